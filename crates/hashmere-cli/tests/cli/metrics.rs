//! Promise: `metrics` prints the figures of stores without a server, each family once, each store with its label.

use crate::support::Scratch;

#[test]
fn figures_of_several_stores() {
    let s = Scratch::new();
    s.sh("set one k v").text();
    s.sh("set two k v").text();
    s.sh("set two l v").text();
    let text = s.sh("metrics one two").text();
    for line in [
        "# TYPE hashmere_store_items gauge",
        "hashmere_store_items{store=\"one\"} 1",
        "hashmere_store_items{store=\"two\"} 2",
        "# TYPE hashmere_store_sets_total counter",
        "hashmere_store_sets_total{store=\"two\"} 2",
    ] {
        assert_eq!(text.lines().filter(|other| *other == line).count(), 1, "{line} in {text}");
    }
    let open = s.sh("metrics --openmetrics one").text();
    assert!(open.contains("# TYPE hashmere_store_sets counter\n") && open.ends_with("# EOF\n"), "{open}");
    s.sh("metrics one none").fails(3, "E1");
    s.sh("metrics").fails(2, "STORE");
}

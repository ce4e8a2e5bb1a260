//! bench.

use crate::support::Scratch;

#[test]
fn bench() {
    let s = Scratch::new();
    let table = s.sh("bench --keys 500 --ops 5000 --items 3000").text();
    for name in ["hot: set+get", "hot: bulk get", "hot: scan", "hot: incr", "large: get", "large: space"] {
        assert!(table.contains(name), "{table}");
    }
    let json = s.sh("bench --keys 10 --ops 100 --items 0 --json").text();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["ns_per_op"].as_f64().unwrap() > 0.0);
    s.run(["bench", "--keys", "10", "--ops", "10", "--items", "0", "--dir", "."]).text();
    assert_eq!(s.sh("ls").text(), "", "the stores are removed");
    assert_eq!(std::fs::read_dir(s.path()).unwrap().count(), 1);
}

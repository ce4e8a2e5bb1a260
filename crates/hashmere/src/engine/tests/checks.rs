//! What `check` says of a store that somebody died in. That it finds no damage there, whatever the operation, is part of
//! the enumerations of deaths.

use super::probe::until_death;
use super::world::{strict, World};

/// Wherever a set dies, at most its own lock is counted as a dead one, until somebody repairs it.
#[test]
fn locks_of_the_dead_are_counted() {
    let mut seen = 0;
    for stores in 1.. {
        let world = World::new(strict(64));
        let (victim, survivor) = (world.client(), world.client());
        victim.t_set(b"key", b"before").unwrap();
        victim.probe.rewind();
        victim.probe.die_after(stores);
        let lived = until_death(|| victim.t_set(b"key", b"after")).is_some();
        // As long as it lives the lock is only held.
        assert_eq!(survivor.check().dead_locks, 0, "death {stores}");
        victim.kill();
        let report = survivor.check();
        assert!(report.is_clean() && report.dead_locks <= 1, "death {stores}: {report:?}");
        seen += report.dead_locks;
        survivor.t_set(b"key", b"repaired").unwrap();
        assert_eq!(survivor.check().dead_locks, 0, "death {stores}");
        if lived {
            break;
        }
    }
    assert!(seen > 0, "nobody died with a lock");
}

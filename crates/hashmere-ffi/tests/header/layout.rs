//! Sizes and offsets: as the C compiler sees them, and as Rust does.

use super::text::Header;
use hashmere_ffi::abi::*;
use hashmere_ffi::feed_abi::*;
use hashmere_ffi::log_abi::*;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::process::Command;

/// One line for each structure, field and constant, printed by a program that the C compiler makes of the header.
pub fn from_c(header: &Header) -> String {
    let mut program =
        String::from("#include <hashmere_transaction.h>\n#include <hashmere_queue.h>\n#include <hashmere_log.h>\n#include <hashmere_feed.h>\n#include <hashmere_dump.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, fields) in &header.structures {
        let _ = writeln!(program, "printf(\"{name} %zu\\n\", sizeof({name}));");
        for field in fields {
            let size = format!("sizeof((({name} *)0)->{field})");
            let _ = writeln!(program, "printf(\"  {field} %zu %zu\\n\", offsetof({name}, {field}), {size});");
        }
    }
    for (name, _) in &header.constants {
        let _ = writeln!(program, "printf(\"{name} %d\\n\", (int){name});");
    }
    program.push_str("return 0; }\n");
    run(&program)
}

fn run(program: &str) -> String {
    let folder = std::env::temp_dir().join(format!("hashmere-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    let built = Command::new(compiler).args(strict).arg(include).arg(&source).arg("-o").arg(&binary).status();
    assert!(built.expect("a C compiler").success(), "the header does not compile");
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Size of a field from a pointer to it that is never followed.
fn size_behind<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! layout {
    ($text:ident; $($rust:ident $c:ident: $($field:ident)*;)*) => {$(
        let _ = writeln!($text, concat!(stringify!($c), " {}"), size_of::<$rust>());
        $(
            let size = size_behind(|s: &$rust| &s.$field);
            let _ = writeln!($text, concat!("  ", stringify!($field), " {} {}"), offset_of!($rust, $field), size);
        )*
    )*};
}

/// The same lines for the structures of `abi.rs`.
pub fn from_rust() -> String {
    let mut text = String::new();
    layout! { text;
        HmError hm_error: code os_error pid text_len text;
        HmBytes hm_bytes: data len;
        HmAttributes hm_attributes: flags expiry expiry_ms min_version;
        HmMetadata hm_metadata: value_len version expires_at_ms uid flags reserved;
        HmStored hm_stored: version uid created;
        HmPair hm_pair: key value metadata;
        HmOptions hm_options: size flags max_bytes expected_items busy_timeout_ms sync_every_ms segment_bytes leaf_bytes
            fixed_key_len fixed_value_len permissions origin on_recovery on_recovery_user feed;
        HmView hm_view: data len metadata zero_copy reserved opaque;
        HmReservation hm_reservation: data len opaque;
        HmChange hm_change: action reserved value attributes;
        HmCounter hm_counter: initial attributes;
        HmSignedCounter hm_signed_counter: initial attributes;
        HmFloatCounter hm_float_counter: initial attributes;
        HmKey hm_key: data len number kind reserved;
        HmFilter hm_filter: size flags prefix glob regex part parts;
        HmStats hm_stats: size is_cache items bytes_live bytes_dead bytes_free bytes_file bytes_allocated bytes_max
            segments_total segments_log segments_index segments_large segments_free segments_waiting segments_offline
            segment_bytes index_slots index_used index_depth index_overflow splits segments_cleaned records_moved evictions expiries
            hits misses sets deletes lock_waits takeovers read_retries clears recycle_epoch is_durable syncs
            last_sync_ms is_poisoned clients no_space_since_ms;
        HmClient hm_client: slot pid since_ms hits misses sets deletes pins name;
        HmBackupReport hm_backup_report: size items bytes_file is_thinned;
        HmReport hm_report: size problems items segments leaves dead_locks;
        HmBatchResult hm_batch_result: result reserved number signed_number float_number stored value metadata;
        HmCondition hm_condition: key value version kind reserved;
        HmPoolOptions hm_pool_options: size elements bytes max_queues max_endpoints batch on_death;
        HmPoolStats hm_pool_stats: size elements bytes bytes_all endpoints max_endpoints queues max_queues held recovered;
        HmQueueOptions hm_queue_options: size kind bound;
        HmElement hm_element: data len index slot;
        HmLogOptions hm_log_options: size flags rings ring_bytes history_bytes level on_full full_timeout_ms on_no_drainer on_too_long;
        HmLogStats hm_log_stats: size bytes rings ring_bytes history_bytes line_max rings_used bytes_waiting
            bytes_undelivered lines lost halves threads drainer_pid;
        HmRing hm_ring: ring is_owned thread pid reserved process bytes_waiting unreported_drops;
        HmField hm_field: key kind truth text integer natural real;
        HmLine hm_line: text fields field_count process position time_ns level pid thread lost flags reserved;
        HmDrainOptions hm_drain_options: size flags to format level fd path max_bytes keep show user;
        HmFeedInfo hm_feed_info: size number position oldest bytes values;
        HmFeedOptions hm_feed_options: size flags prefix;
        HmFeedEvent hm_feed_event: kind operation reason value_state key value version expires_at_ms ts_ms value_len flags
            origin has_supplied_hash supplied_hash transaction_id transaction_index transaction_len token;
    }
    text
}

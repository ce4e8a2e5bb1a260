//! Words that were given up for the field's own (`docs/glossary.md`, `docs/reference/names.md`) do not come back.

use crate::source::{those, Source};
use crate::{demand_none, places, Problem};

/// A name that was given up, and what is said instead.
type Word = (&'static str, &'static str);

/// Not in any file: calls, options and results in whatever language, private names of the engine, and words of comments
/// that do not say which process or which moment is meant.
const GONE: &[Word] = &[
    ("existing_only", "create(false)"),
    ("delete_on_last_exit", "remove_on_last_close"),
    ("on_rebuild", "on_recovery"),
    ("maintain", "compact"),
    ("retain_ref", "inc_ref"),
    ("release_ref", "dec_ref"),
    ("ref_retain", "inc_ref"),
    ("ref_release", "dec_ref"),
    ("add_signed", "incr_by"),
    ("version_at_least", "min_version"),
    ("count_exact", "len_exact"),
    ("handle_of", "id_of"),
    ("random_pair", "random"),
    ("scan_records", "scan_items"),
    ("Remaining", "Expiry"),
    ("Misuse", "InvalidState"),
    ("Unclean", "NotCleanlyClosed"),
    ("HM_E_MISUSE", "HM_E_INVALID_STATE"),
    ("HM_E_UNCLEAN", "HM_E_NOT_CLEANLY_CLOSED"),
    ("HM_E_UNSAFE", "HM_E_INSECURE_PERMISSIONS"),
    ("HM_E_MISMATCH", "HM_E_OPTION_MISMATCH"),
    ("HM_EXISTING", "HM_NO_CREATE"),
    ("HM_EXCLUSIVE", "HM_CREATE_NEW"),
    ("HM_SHORT", "HM_BUFFER_TOO_SMALL"),
    ("HM_DIFFERENT", "HM_MISMATCH"),
    ("HM_PRESENT", "HM_EXISTS"),
    ("HM_KEPT", "HM_UNCHANGED"),
    ("HM_BOUND", "HM_QUEUE_FULL"),
    ("hm_peek", "hm_get_metadata"),
    ("hm_length", "hm_value_len"),
    ("hm_exists", "hm_contains"),
    ("hm_count", "hm_len"),
    ("hm_meta", "hm_metadata"),
    ("hm_hand", "hm_endpoint"),
    ("hm_pull", "hm_queue_pop"),
    ("hm_readiness", "hm_ready_fd"),
    ("hm_hashed_get", "hm_get_at"),
    ("hm_hashed_set", "hm_set_with_at"),
    ("hm_uid_get", "hm_get_at"),
    ("hm_id_get", "hm_get_at"),
    ("hm_set_marked", "hm_cas_version"),
    ("hm_remark", "hm_cas_version"),
    ("hm_pump", "hm_manual_drainer"),
    ("drain_here", "drain_manual"),
    ("drain_after", "drain_standby"),
    ("untold", "unreported_drops"),
    ("Readiness", "ReadyFd"),
    ("Grip", "EndpointLayout"),
    ("grip", "endpoint layout"),
    ("pull", "pop"),
    ("heed", "apply"),
    ("burial", "mark of death"),
    ("lane", "writer"),
    ("Lane", "Writer"),
    ("canary", "seeded fault"),
    ("Canary", "Fault"),
    ("salvage", "log scan"),
    ("for ever", "forever"),
    ("anew", "again"),
    ("outline", "record header"),
    ("bury", "mark dead"),
    ("tally", "count"),
    ("tallies", "counts"),
    ("limbo", "pending free"),
    ("Limbo", "PendingFree"),
    ("ripe", "compaction threshold"),
    ("sleepy", "model memory"),
    ("Sleepy", "ModelMem"),
    ("stories", "scenarios"),
    ("patience", "backoff, or a time limit"),
    ("sight", "lookup"),
    ("heed_snapshot", "apply_snapshot"),
    ("bring_to_life", "mark_live"),
    ("take_back", "roll_back"),
    ("settle", "recover, relocate"),
    ("settled", "recovered"),
    ("settle_large", "finish_large"),
    ("by_force", "in_emergency"),
    ("shrink_in_passing", "shrink_incrementally"),
    ("is_past", "has_expired"),
    ("is_kept", "is_retained"),
    ("has_kept", "has_retained"),
    ("copy_kept", "copy_retained"),
    ("change_life", "change_status"),
    ("borrow_anew", "borrow_again"),
    ("plant_anew", "plant_again"),
    ("FOR_EVER", "FOREVER"),
    ("make_run", "make_extent"),
    ("find_run", "find_extent"),
    ("claim_run", "claim_extent"),
    ("back_run", "back_extent"),
    ("take_row", "take_adjacent"),
    ("row_of", "adjacent"),
    ("sum word", "checksum word"),
    ("by force", "in an emergency"),
    ("in passing", "between writes, incrementally"),
    ("unsettled", "unrecovered"),
    ("settler", "repairer"),
    ("KeptReused", "RetainedReused"),
    ("LIFE", "STATUS"),
    ("AddSigned", "IncrBy"),
    ("RetainRef", "IncRef"),
    ("ReleaseRef", "DecRef"),
    ("What came of it", "The result"),
    ("What becomes of", "What happens to"),
    ("the long way", "the full protocol"),
    ("So many", "n"),
    ("The dead", "crashed processes, dead records"),
    ("The living", "live processes"),
    ("Outline", "RecordHeader"),
    ("stood", "validate"),
    ("bell", "wake flag"),
    ("meanwhile", "during it, or nothing"),
    ("Meanwhile", "During it, or nothing"),
    ("whoever", "the process that"),
    ("Whoever", "The process that"),
    ("nobody", "no process, no reader"),
    ("Nobody", "No process, no reader"),
    ("somebody", "another process"),
    ("Somebody", "Another process"),
    ("anybody", "any process"),
    ("anyone", "any process"),
    ("everybody", "all processes"),
    ("everyone", "all processes"),
    ("someone", "another process"),
    ("the living", "live processes"),
    ("the dead", "crashed processes"),
    ("is told", "is called with"),
    ("Is told", "Is called with"),
    ("are told", "are reported"),
    ("was told", "got"),
    ("were told", "got"),
    ("so many", "n"),
    ("stand", "be, or be stored"),
    ("Stand", "Stop, or Pinned"),
    ("standing", "stopped"),
    ("stands", "is stored"),
    ("hashmere-kit", "hashmere-testkit"),
];

/// Files that may name them: this one, and a test of the system's user of that name.
const SPARED: &[&str] = &["crates/hashmere-testkit/tests/tidy/words.rs", "crates/hashmere-server/tests/serve/user.rs"];

/// The lines with a word, counted from 0. Two words are found where one space is between them; a word in lower case
/// also as a part of a name (`all_told`).
fn lines_with(text: &str, word: &str) -> Vec<usize> {
    // Most files have none of the words, and a search of each line costs more than one of all of them.
    if !text.contains(word) {
        return Vec::new();
    }
    let joins = !word.chars().all(|c| c.is_ascii_lowercase());
    let is_part = |c: char| c.is_alphanumeric() || joins && c == '_';
    let stands_alone =
        |line: &str, at: usize| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part);
    let has = |line: &str| line.match_indices(word).any(|(at, _)| stands_alone(line, at));
    text.lines().enumerate().filter(|(_, line)| has(line)).map(|(number, _)| number).collect()
}

fn gone(sources: &[Source], words: &[Word]) -> Vec<Problem> {
    let mut found = Vec::new();
    for source in sources {
        for (word, instead) in words {
            let text = format!("`{word}` was given up: say `{instead}`");
            found.extend(
                lines_with(&source.text, word).into_iter().map(|line| Problem::on_line(&source.path, line, &text)),
            );
        }
    }
    found
}

fn sources() -> Vec<Source> {
    let endings = ["rs", "md", "h", "hpp", "c", "cc", "py", "pyi", "rb", "toml", "sh", ""];
    those(|source| endings.contains(&source.ending()) && !source.is_in(SPARED))
}

#[test]
fn names_that_were_given_up_do_not_come_back() {
    demand_none(&gone(&sources(), GONE));
}

#[test]
fn a_name_that_came_back_is_found_and_longer_names_are_not() {
    let text = "store.maintain()\nmaintained, maintains_all\nsay `maintain`\nfn do_maintain()\nhm_peek_at\n";
    let found = gone(&[Source::new("a.rs", text)], &[("maintain", "compact"), ("hm_peek", "hm_get_metadata")]);
    assert_eq!(places(&found), ["a.rs:1", "a.rs:3", "a.rs:4"]);
}

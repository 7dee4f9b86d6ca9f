//! Messages between shards, in exports and imports.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use statehouse::TransferError;

use crate::furnished::options;
use crate::{GOLDEN, at_rest, imported};

/// No store has messages for other shards today. One that has goes on with them.
#[test]
fn messages_between_shards_are_exported_and_imported() {
    let lines: Vec<&str> = std::str::from_utf8(GOLDEN).expect("text").lines().collect();
    let last = lines.iter().rposition(|line| line.contains(r#""kind":"message""#)).expect("a message");
    let bucket = lines[..last].iter().rfind(|line| line.contains(r#""kind":"bucket""#)).expect("its bucket");
    let bucket: serde_json::Value = serde_json::from_str(bucket).expect("JSON");
    let command = lines[last - 1].split_once(r#""command""#).expect("a message to a group").1;
    let outgoing = format!(
        r#"{{"kind":"message","space":"shop","branch_number":2,"source":"order-7","commit":76,"ordinal":3,"outgoing":true,"command"{command}"#
    );
    let received = format!(r#"{{"kind":"received","bucket":{},"source_bucket":9,"last":258}}"#, bucket["bucket"]);
    let sealed = |added: &[&str]| {
        let before_footer = &lines[..lines.len() - 1];
        let all = [&before_footer[..=last], added, &before_footer[last + 1..]].concat();
        let (mut counts, mut bytes) = (BTreeMap::new(), String::new());
        for line in all {
            let parsed: serde_json::Value = serde_json::from_str(line).expect("JSON");
            *counts.entry(parsed["kind"].as_str().expect("a kind").to_owned()).or_insert(0) += 1;
            bytes += &format!("{line}\n");
        }
        let hash = Sha256::digest(bytes.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let counts = serde_json::to_string(&counts).expect("JSON");
        (bytes + &format!(r#"{{"kind":"footer","counts":{counts},"sha256":"{hash}"}}"#) + "\n").into_bytes()
    };
    assert!(sealed(&[]) == GOLDEN, "as the store seals it");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("house");
    let with_both = sealed(&[&outgoing, &received]);
    imported(&path, &with_both).expect("imported");
    assert!(at_rest(&path) == with_both, "and written as the same bytes");
    let house = options().open(&path).expect("open");
    assert_eq!(house.messages_waiting().expect("counts").outgoing, 1);
    let listed = house.waiting_messages(100).expect("a list");
    let outgoing_ones = listed.iter().filter(|message| message.state == statehouse::MessageState::Outgoing);
    assert_eq!(outgoing_ones.map(|message| message.number).collect::<Vec<_>>(), [76 << 32 | 3]);

    let due = outgoing.replace(r#""outgoing":true"#, r#""due_us":7,"outgoing":true"#);
    let zero = outgoing.replace(r#""commit":76,"ordinal":3"#, r#""ordinal":0"#);
    let nowhere = received.replace(r#""source_bucket":9"#, r#""source_bucket":99"#);
    for wrong in [[&*outgoing, &*outgoing].as_slice(), &[&*due], &[&*zero], &[&*nowhere]] {
        let refused = imported(&folder.path().join("refused"), &sealed(wrong));
        assert!(matches!(refused, Err(TransferError::Damaged(_))), "{wrong:?}: {refused:?}");
    }
}

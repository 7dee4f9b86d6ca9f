//! Bytes flipped and files cut at random: every one must be noticed, and leave nothing behind.

use std::path::Path;
use std::time::Instant;

use statehouse::{TransferError, backup, import};
use testkit::random::Random;

use super::scene::Scene;

/// How many damages of the backup and the export of this name were not noticed, or left something.
pub(super) fn missed(scene: &Scene, name: &str, seed: u64, damages: u64) -> u64 {
    let mut random = Random::new(seed);
    let target = scene.path("damaged");
    let mut missed = 0;
    for (kind, is_noticed) in
        [("shbackup", backup_is_noticed as fn(&[u8], &Path) -> bool), ("jsonl", import_is_noticed)]
    {
        let began = Instant::now();
        let file = format!("{name}.{kind}");
        let whole = std::fs::read(scene.path(&file)).expect("a file");
        for number in 0..damages {
            let place = usize::try_from(random.below(whole.len() as u64)).expect("a place in the file");
            let bit = random.below(8);
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << bit;
            for (what, bytes) in [("flipped", flipped.as_slice()), ("cut", &whole[..place])] {
                if !is_noticed(bytes, &target) || target.exists() {
                    println!(
                        "backups: {file} {what} at {place}, bit {bit}, damage {number} of seed {seed}: not noticed"
                    );
                    missed += 1;
                }
            }
        }
        println!("backups: {file} of {} bytes, {damages} flips and cuts: {:?}", whole.len(), began.elapsed());
    }
    missed
}

fn backup_is_noticed(bytes: &[u8], target: &Path) -> bool {
    let verified = backup::verify(&mut &*bytes, &mut |_| {});
    let restored = backup::restore(target, &mut &*bytes, &mut |_| {});
    matches!(verified, Err(TransferError::Damaged(_))) && matches!(restored, Err(TransferError::Damaged(_)))
}

fn import_is_noticed(bytes: &[u8], target: &Path) -> bool {
    matches!(import::read(target, &mut &*bytes, &mut |_| {}), Err(TransferError::Damaged(_)))
}

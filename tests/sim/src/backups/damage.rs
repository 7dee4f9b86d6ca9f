//! Bytes flipped and files cut at random: every one must be noticed, and leave nothing behind.

use std::path::Path;

use statehouse::{TransferError, backup, import};
use testkit::random::Random;

use super::scene::Scene;

/// How many damages were not noticed, or left something.
pub(super) fn missed(scene: &Scene, seed: u64, damages: u64) -> u64 {
    let mut random = Random::new(seed);
    let target = scene.path("damaged");
    let mut missed = 0;
    for (file, is_noticed) in
        [("last.shbackup", backup_is_noticed as fn(&[u8], &Path) -> bool), ("last.jsonl", import_is_noticed)]
    {
        let whole = std::fs::read(scene.path(file)).expect("a file");
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

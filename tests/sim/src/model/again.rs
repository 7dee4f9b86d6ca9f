//! The same entries, applied again: the same hash after each, and the same image at the end.

use kernel::{Buckets, Keys};
use testkit::random::Random;

use super::compare::same;
use super::instance::{Instance, Plan};

/// Applies entries again, with the kernel loaded anew at random, and with an image after the one in the middle, if there is one.
pub(crate) fn apply_again(
    random: &mut Random,
    entries: &[Vec<u8>],
    hashes: &[u64],
    buckets: Buckets,
    middle: Option<usize>,
    image: &[u8],
) -> Result<(), String> {
    let reload_one_in = random.pick(&[1, 5, 50, u64::MAX]);
    let plan = Plan::draw(random);
    let mut twin = Instance::genesis(&plan, Keys::new(12_345, kernel::BucketRange::ALL), buckets)?;
    for (number, (entry, hash)) in entries.iter().zip(hashes).enumerate() {
        twin.apply(entry)?;
        same(|| format!("the hash after entry {}, applied again", number + 1), &twin.kernel.applied().hash, hash)?;
        if Some(number) == middle {
            let plan = Plan::draw(random);
            twin = Instance::restore(&plan, Keys::new(77, kernel::BucketRange::ALL), &twin.image()?.0)?;
        } else if random.one_in(reload_one_in) {
            twin.reload()?;
        } else if random.one_in(60) {
            twin.flush()?;
        }
    }
    if twin.image()?.0 != image {
        return Err("the same entries gave another image".into());
    }
    Ok(())
}

//! What an import does with what was held.

use statehouse::records::ClaimOptions;
use statehouse::{Followed, Reason, import};

use crate::furnished::{furnish, options};
use crate::{at_rest, differences, exported, image_at_rest, kind_of, rows};

#[test]
fn what_was_held_is_released_by_an_import() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let house = options().open(path("house")).expect("open");
    let held = furnish(&house);
    let owned = house.group("agents.7").own(&ClaimOptions::worker("w")).expect("owned");
    let lines = exported(&house, None);
    let commit = import::read(&path("released"), &mut lines.as_slice(), &mut |_| {}).expect("imported").commit;

    // Every row that follows from others is what a rebuild gives.
    let (mut again, mut rebuilt) = (Vec::new(), Vec::new());
    let released = at_rest(&path("released"));
    import::read(&path("rebuilt"), &mut released.as_slice(), &mut |_| {}).expect("imported");
    assert_eq!(at_rest(&path("rebuilt")), released, "nothing is held any more");
    image_at_rest(&path("released"), &mut again);
    image_at_rest(&path("rebuilt"), &mut rebuilt);
    let (missing, added) = differences(&rows(&again), &rows(&rebuilt));
    // That the session has ended, which a tick finds to be done where it held a job only.
    assert_eq!(missing.iter().map(|key| kind_of(key)).collect::<Vec<_>>(), ["due by cluster time"], "{missing:02x?}");
    assert!(added.is_empty(), "{added:02x?}");

    let new = options().open(path("released")).expect("open");
    let (old, shop) = (house.space("shop").records(), new.space("shop").records());
    for job in ["mail.3", "mail.5"] {
        let (was, is) = (old.get(job).expect("read").expect("held"), shop.get(job).expect("read").expect("released"));
        assert!(was.holder.is_some() && is.holder.is_none(), "{job}: {is:?}");
        assert_eq!((is.version, is.attempt, is.failures), (was.version + 1, was.attempt, was.failures), "{job}");
    }
    // Whoever held it goes on in the other store alone.
    let fenced = shop.complete(&held.claimed, [("result", "sent")]).expect_err("over").code().to_owned();
    assert_eq!(fenced, "SH-4002");
    old.complete(&held.claimed, [("result", "sent")]).expect("the same attempt");
    assert_eq!(new.group("agents.7").owner().expect("read"), None);
    owned.extend(None).expect("owned there");
    let attempt = new.group("agents.7").own(&ClaimOptions::worker("w2")).expect("owned").attempt();
    assert_eq!(attempt, (1 << 40) + 1);
    let mut names = Vec::new();
    for space in ["default", "shop"] {
        let Followed::Page(page) = new.space(space).changes().read(commit, 100).expect("read") else { panic!("a gap") };
        let released = page.changes.into_iter().filter(|change| change.reason == Reason::Released);
        names.extend(released.map(|change| change.name));
    }
    assert_eq!(names, ["_statehouse.owner", "mail.3", "mail.5"]);
}

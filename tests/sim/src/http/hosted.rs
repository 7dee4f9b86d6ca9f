//! A server with the suite's machine, as a user with a custom machine would build it.

use std::process::ExitCode;

use server::Server;
use statehouse::Options;
use statehouse::keyed::Checkpoints;
use testkit::arguments::Arguments;

use super::tally_machine::TallyMachine;

/// `sim serve-machine --data DIR [--checkpoints DIR] [--panic-at NAME] [--miss-reuse] [--skip-fences] [--skip-versions]`: serves on a
/// free port until it is killed, with the requested planted bugs.
pub(crate) fn serve(arguments: &Arguments) -> ExitCode {
    let data = arguments.text("data").expect("--data DIR");
    if let Some(name) = arguments.text("panic-at") {
        kernel::canary::panic_at(name);
    }
    session::canary::miss_reuse(arguments.flag("miss-reuse"));
    crate::fences::skip(arguments.flag("skip-fences"));
    kernel::canary::skip_versions(arguments.flag("skip-versions"));
    let house = match Options::default().machine(TallyMachine).open(data) {
        Ok(house) => house,
        Err(error) => {
            eprintln!("sim serve-machine: {error}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let served = runtime.block_on(async {
        let listener = server::listen(([127, 0, 0, 1], 0).into()).await?;
        println!("serves on http://{}", listener.local_addr()?);
        let mut served = Server::new(house).hosting::<TallyMachine>();
        if let Some(place) = arguments.text("checkpoints") {
            served = served.keeping_checkpoints(Checkpoints::open(place).expect("a place for checkpoints"));
        }
        server::serve_all(listener, served, std::future::pending()).await
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sim serve-machine: {error}");
            ExitCode::FAILURE
        }
    }
}

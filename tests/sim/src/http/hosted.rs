//! A server with the suite's machine: what a user with a machine of their own builds.

use std::process::ExitCode;

use server::Server;
use statehouse::Options;
use testkit::arguments::Arguments;

use super::tally_machine::TallyMachine;

/// `sim serve-machine --data DIR`: serves on a free port until it is killed.
pub(crate) fn serve(arguments: &Arguments) -> ExitCode {
    let data = arguments.text("data").expect("--data DIR");
    let house = Options::default().machine(TallyMachine).open(data).expect("the directory opens");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let served = runtime.block_on(async {
        let listener = server::listen(([127, 0, 0, 1], 0).into()).await?;
        println!("serves on http://{}", listener.local_addr()?);
        server::serve_all(listener, Server::new(house).hosting::<TallyMachine>(), std::future::pending()).await
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sim serve-machine: {error}");
            ExitCode::FAILURE
        }
    }
}

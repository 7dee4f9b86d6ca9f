//! How a server ends: well, or with an error, from which the command line makes its exit code.

use std::time::Duration;

use statehouse::Options;
use statehouse::sessions::{Command, DecodeError, KvError, Pushes, UserCall, UserMachine, UserState, Writer};
use statehouse_server::{ServeError, Server};
use testkit::http::{Client, Request};
use tokio::sync::oneshot;

/// Panics at every command.
struct Broken;

struct Anything;

impl Command for Anything {
    type Response = ();

    fn encode(&self, _: &mut Writer) {}

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn encode_response((): &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Broken {
    const NUMBER: u16 = 300;
    const VERSION: u16 = 1;
    type Command = Anything;

    fn apply(&self, _: &mut UserState, _: &UserCall, _: Anything, _: &mut Pushes) -> Result<(), KvError> {
        panic!("a defect of the machine");
    }
}

/// Serves a new house, does `work` to it, and stops.
fn ended(work: impl FnOnce(&Client)) -> Result<(), ServeError> {
    let folder = tempfile::tempdir().expect("a folder");
    let house = Options::default().machine(Broken).open(folder.path().join("house")).expect("a house");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listener = runtime.block_on(statehouse_server::listen(address)).expect("a listener");
    let client = Client::to(listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let served = runtime.spawn(statehouse_server::serve_all(listener, Server::new(house).hosting::<Broken>(), stopped));
    work(&client);
    drop(stop);
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), served).await });
    ended.expect("it ends").expect("no panic")
}

fn status(client: &Client, request: Request) -> u16 {
    client.send(request).expect("answered").status
}

#[test]
fn a_server_whose_store_had_stopped_ends_with_an_error() {
    assert!(ended(|client| assert_eq!(status(client, Request::put("/v1/cells/a").body("1")), 201)).is_ok());
    let stopped = ended(|client| {
        let opened = client.send(Request::post("/v1/sessions").body("{}")).expect("answered").json();
        let [session, secret] = ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned());
        let path = format!("/v1/sessions/{session}/requests?machine=300&group=g");
        let request = Request::post(path).header("Statehouse-Session-Secret", secret).header("Statehouse-Request", "1");
        assert_eq!(status(client, request.body("x")), 504);
    });
    let Err(ServeError::Closing(error)) = stopped else { panic!("{stopped:?}") };
    assert!(error.to_string().contains("a defect of the machine"), "{error}");
}

//! A bare axum server: takes any request whole and answers with bytes that were made before.

use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use testkit::arguments::Arguments;

/// `bench http-echo --bytes N`: serves on a free port until it is killed, with the runtime that the real server has.
pub fn serve(arguments: &Arguments) -> ExitCode {
    let bytes = usize::try_from(arguments.number("bytes", 100)).expect("a size");
    let router = Router::new().fallback(answer).with_state(Bytes::from(vec![b'x'; bytes]));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("serves on http://{}", listener.local_addr()?);
        axum::serve(listener, router).await
    });
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

async fn answer(State(bytes): State<Bytes>, _taken: Bytes) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], bytes)
}

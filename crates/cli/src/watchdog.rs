//! Tells the service manager that the server answers, for as long as it does.
//!
//! Keeps: nothing is told but what was just tried, by a request over the network as any client sends it. A server that answers "too
//! many connections" answers, and one that has no place for another connection or handshake may not get to answer: no restart would
//! help either. One whose store has stopped at a failure does not count as alive, since a restart is what helps.

use std::time::Duration;

use server::load::Load;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::own_server::OwnServer;
use crate::service_manager::ServiceManager;

/// An answer to this request is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 4 << 10;

/// How a server says that it is not alive.
const NOT_ALIVE: &[u8] = b"\"alive\":false";

/// Tells the manager in half of its time, again and again, that the server answers. Ends at once if nobody wants to
/// know.
pub(crate) async fn keep(manager: &ServiceManager, server: &OwnServer, load: &Load) {
    let Some(time) = manager.watchdog().filter(|_| manager.is_there()) else { return };
    let mut ticks = interval(time / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut answered = true;
    loop {
        ticks.tick().await;
        let answers = answers_within(time / 4, server).await || is_full(load);
        if answers {
            manager.alive();
        } else if answered {
            tracing::error!("the server does not answer itself; the service manager is going to restart it");
        }
        answered = answers;
    }
}

/// Whether a connection has to wait, or is closed, because of those that are there.
fn is_full(load: &Load) -> bool {
    [&load.connections, &load.handshakes].into_iter().any(|gate| gate.used() >= gate.max())
}

async fn answers_within(patience: Duration, server: &OwnServer) -> bool {
    timeout(patience, answers(server)).await.unwrap_or(false)
}

/// Whether a request gets an answer. Any bytes are one, unless they say that the server is not alive.
async fn answers(server: &OwnServer) -> bool {
    let asked = async {
        let mut stream = server.connect().await?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        let mut limited = stream.take(ANSWER_BYTES_MAX as u64);
        // Whoever speaks another protocol may reset the connection behind its answer.
        let read = limited.read_to_end(&mut answer).await;
        if answer.is_empty() { read.map(|_| answer) } else { Ok(answer) }
    };
    let answer = asked.await.unwrap_or_default();
    !answer.is_empty() && !answer.windows(NOT_ALIVE.len()).any(|bytes| bytes == NOT_ALIVE)
}

/// How often the manager is told how far the replay is.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Whether a server counts as one that answers, if it accepts a connection and sends this.
    async fn counts(sends: Option<&'static str>) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = [0; 256];
            assert!(stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0));
            match sends {
                Some(answer) => stream.write_all(answer.as_bytes()).await.expect("sent"),
                None => std::future::pending().await,
            }
        });
        answers_within(Duration::from_millis(500), &OwnServer::at(address)).await
    }

    #[tokio::test]
    async fn only_an_answer_counts_and_only_one_that_does_not_ask_for_a_restart() {
        assert!(counts(Some("HTTP/1.1 200 OK\r\n\r\n{\"alive\":true}")).await);
        assert!(counts(Some("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"code\":\"SH-2010\"}")).await, "it is full");
        assert!(counts(Some("\u{15}\u{3}\u{3}")).await, "it speaks another protocol");
        assert!(
            !counts(Some("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"alive\":false}")).await,
            "its store has stopped"
        );
        assert!(!counts(None).await, "it accepts and says nothing");
        assert!(!counts(Some("")).await, "it accepts and closes");
        let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        assert!(!answers_within(Duration::from_millis(500), &OwnServer::at(nobody)).await);
    }
}

//! Memory for a page of a listing: reserved before the page is built, reduced to the answer's size afterwards, and held
//! until the answer is written.
//!
//! A page is read, turned into text and joined before its size is known. It may take up to [`PAGE_BUILD_BYTES`], so
//! that much must be free. Pages share half of the memory for requests: clients that do not read theirs cannot keep
//! others from writing.
//!
//! Keeps: pages never take more than their share. A page that finds no free memory waits for it, up to
//! [`PAGE_WAIT_MAX`] and behind at most a quarter of all requests; then it is refused. Never: holds memory for a
//! request that waits for something to follow.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use contract::limits::PAGE_BYTES_MAX;
use tokio::time::timeout;

use crate::Server;
use crate::api::refusal::Refusal;
use crate::load::{Load, Permit};

/// The memory of a page while it is built: its rows, the text of each, and the joined text, which has grown.
const PAGE_BUILD_BYTES: usize = 4 * PAGE_BYTES_MAX;

/// How long a page waits for memory: longer than it takes to build a few pages.
const PAGE_WAIT_MAX: Duration = Duration::from_secs(1);

/// The memory of one page.
#[derive(Debug)]
pub(crate) struct PagePermit {
    held: Option<PageMemory>,
}

/// A page's part of the memory for requests, and of the pages' share of it.
#[derive(Debug)]
pub(crate) struct PageMemory {
    share: Permit,
    memory: Permit,
}

/// A page held by its answer.
#[derive(Clone)]
struct Held(Arc<PageMemory>);

impl Server {
    /// Reserves the memory of a page before it is built.
    pub(crate) async fn reserve_page(&self) -> Result<PagePermit, Refusal> {
        let max = self.limits.request_memory_bytes_max;
        let bytes = PAGE_BUILD_BYTES.min(max / 2);
        let refused = || {
            self.load.memory.note_refused();
            Refusal::NoMemory { max, bytes }
        };
        let taken = match PageMemory::take(&self.load, bytes) {
            Some(taken) => taken,
            None => {
                let _waiting = self.load.page_waits.enter().ok_or_else(refused)?;
                let waited = timeout(PAGE_WAIT_MAX, PageMemory::wait(&self.load, bytes)).await;
                waited.ok().flatten().ok_or_else(refused)?
            }
        };
        Ok(PagePermit { held: Some(taken) })
    }
}

impl PagePermit {
    /// Releases the memory, because the request starts to wait. Its result is counted when it is an answer.
    pub(crate) fn give_back(&mut self) {
        self.held = None;
    }

    /// Attaches the memory to the answer.
    pub(crate) fn hold(self, mut response: Response) -> Response {
        if let Some(held) = self.held {
            response.extensions_mut().insert(Held(Arc::new(held)));
        }
        response
    }
}

impl PageMemory {
    fn take(load: &Load, bytes: usize) -> Option<Self> {
        Some(Self { share: load.pages.try_bytes(bytes)?, memory: load.memory.try_bytes(bytes)? })
    }

    async fn wait(load: &Load, bytes: usize) -> Option<Self> {
        Some(Self { share: load.pages.wait_bytes(bytes).await?, memory: load.memory.wait_bytes(bytes).await? })
    }

    /// The memory of an answer, if it is a page.
    pub(crate) fn of<B>(response: &mut axum::http::Response<B>) -> Option<Self> {
        let Held(held) = response.extensions_mut().remove()?;
        Arc::into_inner(held)
    }

    /// Permits for exactly these bytes: releases the surplus, or takes what is missing, if it is free.
    pub(crate) fn resize(mut self, load: &Load, bytes: usize) -> Option<Vec<Permit>> {
        let more = bytes.saturating_sub(load.memory.bytes_of(&self.memory));
        match more {
            0 => {
                load.pages.keep_bytes(&mut self.share, bytes);
                load.memory.keep_bytes(&mut self.memory, bytes);
            }
            _ => {
                self.share.merge(load.pages.take_bytes(more)?);
                self.memory.merge(load.memory.take_bytes(more)?);
            }
        }
        Some(vec![self.share, self.memory])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ServerLimits;

    fn load(bytes: usize) -> Load {
        Load::new(&ServerLimits { request_memory_bytes_max: bytes, ..ServerLimits::default() })
    }

    #[test]
    fn a_page_holds_what_its_answer_takes() {
        let load = load(64 << 20);
        let taken = PageMemory::take(&load, PAGE_BUILD_BYTES).expect("memory");
        assert_eq!(load.memory_bytes(), PAGE_BUILD_BYTES);
        let held = taken.resize(&load, 5 << 20).expect("less");
        assert_eq!(load.memory_bytes(), 5 << 20);
        drop(held);
        let more = PageMemory::take(&load, PAGE_BUILD_BYTES).and_then(|taken| taken.resize(&load, 24 << 20));
        assert_eq!((more.is_some(), load.memory_bytes()), (true, 24 << 20));
        let all = PageMemory::take(&load, 1 << 20).and_then(|taken| taken.resize(&load, 24 << 20));
        assert!(all.is_none(), "it would be more than the share of pages");
        assert_eq!(load.memory_bytes(), 24 << 20);
    }

    #[test]
    fn pages_leave_memory_to_others() {
        let load = load(64 << 20);
        let pages: Vec<_> = (0..10).map_while(|_| PageMemory::take(&load, PAGE_BUILD_BYTES)).collect();
        assert_eq!((pages.len(), load.memory_bytes()), (2, 32 << 20));
        assert!(load.take_memory(32 << 20).is_some());
    }

    #[tokio::test]
    async fn a_page_waits_for_memory_that_others_give_back() {
        let load = load(32 << 20);
        let taken = PageMemory::take(&load, PAGE_BUILD_BYTES).expect("memory");
        let mut waiting = Box::pin(PageMemory::wait(&load, PAGE_BUILD_BYTES));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        drop(taken);
        assert!(waiting.await.is_some());
        assert_eq!(load.memory_bytes(), 0, "and gives it back");
    }
}

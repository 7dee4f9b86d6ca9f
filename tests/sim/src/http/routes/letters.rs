//! The tour of messages that their group refuses.

use std::time::{Duration, Instant};

use client::Error;
use serde_json::json;
use wire::letters::ListLetters;
use wire::transactions::Transaction;

use super::Tour;

impl Tour<'_> {
    /// A message that its group refuses until the cell that it expects is there, and one that nobody wants.
    pub(super) async fn letters(&self) -> Result<(), Error> {
        let send = json!({
            "op": "send", "group": "tour/letters",
            "if": [{ "cell": "tour.open", "exists": true }],
            "do": [{ "op": "cell.set", "name": "tour.got", "value": 1 }],
        });
        let body: Transaction =
            wire::from_json_text(&json!({ "do": [send, send] }).to_string()).expect("a transaction");
        self.typed.transact("tour/sender", &body).await?;
        let refusing = self.typed.group("tour/letters");
        let until = Instant::now() + Duration::from_secs(60);
        let letters = loop {
            let page = refusing.dead_letters(&ListLetters { limit: Some(10), cursor: None }).await?;
            if page.letters.len() == 2 {
                break page.letters;
            }
            assert!(Instant::now() < until, "both messages are refused: {page:?}");
        };
        let first = (letters[0].source.as_str(), letters[0].code.as_str(), letters[0].names.as_slice());
        assert_eq!(first, ("tour/sender", "SH-1003", ["tour.got".to_owned()].as_slice()));
        let refused = refusing.retry_dead_letter(letters[0].number).await.expect_err("still not there");
        assert_eq!(refused.code(), Some("SH-1003"));
        refusing.cells().set("tour.open", true).await?;
        refusing.retry_dead_letter(letters[0].number).await?;
        refusing.drop_dead_letter(letters[1].number).await?;
        let gone = refusing.drop_dead_letter(letters[1].number).await.expect_err("it is gone");
        assert_eq!(gone.code(), Some("SH-1023"));
        let left = self.typed.dead_letters(&ListLetters::default()).await?;
        assert!(left.letters.iter().all(|letter| letter.group != "tour/letters"), "{left:?}");
        Ok(())
    }
}

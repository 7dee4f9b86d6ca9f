//! Dead letters: messages that their group refused.

use wire::letters::{ChooseLetter, LetterDone, LetterList, ListLetters};
use wire::routes::{LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY};

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Messages that were refused: by the client's group, or by any if it is in none.
    ///
    /// ```no_run
    /// # async fn example(client: statehouse_client::Client) -> Result<(), statehouse_client::Error> {
    /// use statehouse_client::wire::letters::ListLetters;
    /// let stock = client.group("stock");
    /// for letter in stock.dead_letters(&ListLetters::default()).await?.letters {
    ///     println!("{} from {}: {}", letter.number, letter.source, letter.detail);
    ///     stock.retry_dead_letter(letter.number).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dead_letters(&self, query: &ListLetters) -> Result<LetterList, Error> {
        self.call(LETTERS_LIST, &[]).query(query).read().await
    }

    /// Sends a dead letter of the client's group again. If it is refused again, it stays as it is.
    pub async fn retry_dead_letter(&self, number: u64) -> Result<LetterDone, Error> {
        self.call(LETTERS_RETRY, &[]).json(&ChooseLetter { number }).read().await
    }

    /// Drops a dead letter of the client's group.
    pub async fn drop_dead_letter(&self, number: u64) -> Result<LetterDone, Error> {
        self.call(LETTERS_DROP, &[]).json(&ChooseLetter { number }).read().await
    }
}

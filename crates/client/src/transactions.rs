//! Transactions: operations of any contract in one commit of a group, all or nothing.

use wire::routes::TRANSACTIONS_COMMIT;
use wire::transactions::{Committed, Transaction};

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Commits operations in a group; see [`Transaction`].
    ///
    /// ```no_run
    /// # async fn example(client: statehouse_client::Client) -> Result<(), statehouse_client::Error> {
    /// use statehouse_client::wire::{transactions::Transaction, from_json_text};
    /// let paid: Transaction = from_json_text(r#"{
    ///     "if": [{"cell": "paid", "absent": true}],
    ///     "do": [{"op": "cell.set", "name": "paid", "value": true}]}"#).expect("a transaction");
    /// client.transact("order-7", &paid).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transact(&self, group: &str, transaction: &Transaction) -> Result<Committed, Error> {
        self.call(TRANSACTIONS_COMMIT, &[group]).json(transaction).read().await
    }
}

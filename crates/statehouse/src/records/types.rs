//! The record types of a space.

use contract::Error;
use contract::records::types::RecordType;
use kernel::CatalogueChange;
use kernel::catalogue::TypeDeclaration;

use crate::house::Space;
use crate::sender::change;

impl Space {
    /// Declares a type for the records whose names start with `prefix`, or changes an existing one as far as possible:
    /// states and indexes can be added, the state field is fixed. Existing records keep their type. A new index is filled in
    /// the background; until it has an entry for every record, scans do without it.
    pub fn declare_type(&self, prefix: &str, record_type: RecordType) -> Result<(), Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        let record_type = Box::new(record_type);
        change(
            &self.scope.shard,
            self.scope.sender.as_ref(),
            CatalogueChange::DeclareType(TypeDeclaration { space, prefix: prefix.to_owned(), record_type }),
        )?;
        // It fills new indexes.
        self.scope.shard.wake_walker();
        Ok(())
    }

    /// The record types of this space, each with the prefixes of names that it is declared for.
    pub fn types(&self) -> Result<Vec<(Vec<String>, RecordType)>, Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space(catalogue.space_named(&self.scope.space)?)?;
        Ok(space.types.iter().map(|declared| (declared.prefixes.clone(), declared.definition.clone())).collect())
    }
}

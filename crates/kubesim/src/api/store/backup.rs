//! A backup of the store, and its restore, as of etcd: the revision goes back as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ObjectCollection, ObjectStore, StoredObject};

/// All objects and the revision. The installed kinds must be the same at the restore.
#[derive(Debug, Clone)]
pub struct StoreBackup {
    revision: u64,
    objects: Vec<BTreeMap<String, Arc<StoredObject>>>,
}

impl ObjectStore {
    pub fn make_backup(&self) -> StoreBackup {
        let objects = self.collections.iter();
        StoreBackup {
            revision: self.revision,
            objects: objects.map(|it| it.objects.clone()).collect(),
        }
    }

    /// Breaks all watches, as the restart of the API servers does. A watch that then resumes at a
    /// later revision gets no event before the store has passed it.
    pub fn restore_backup(&mut self, backup: &StoreBackup) {
        self.cut_watches(None);
        self.revision = backup.revision;
        for (collection, objects) in self.collections.iter_mut().zip(&backup.objects) {
            collection.restore_objects(objects, backup.revision);
        }
    }
}

impl ObjectCollection {
    fn restore_objects(&mut self, objects: &BTreeMap<String, Arc<StoredObject>>, revision: u64) {
        self.history.clear();
        self.forgotten = revision;
        self.by_node.clear();
        self.objects.clone_from(objects);
        for (key, stored) in objects {
            self.update_node_index(key, None, Some(stored));
        }
    }
}

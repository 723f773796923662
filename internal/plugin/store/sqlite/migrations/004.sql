CREATE INDEX item_owed ON item (seq) WHERE state = 'owed';

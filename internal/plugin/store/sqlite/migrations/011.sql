-- Indexes for the list of tasks: work in the background, and messages that could not
-- be delivered. A delivery that a person has dismissed is final, too.
CREATE INDEX item_background ON item (seq) WHERE owner <> '' OR instr(inbound, '"task":true');
CREATE INDEX outbox_undelivered ON outbox (seq) WHERE state IN ('failed', 'ambiguous');
DROP INDEX outbox_final;
CREATE INDEX outbox_final ON outbox (created) WHERE state IN ('sent', 'failed', 'ambiguous', 'dismissed');

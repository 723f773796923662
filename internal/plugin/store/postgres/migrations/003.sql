-- Results of items, which were notes, or a row of their own if an item is a message to
-- another session. Such messages, their runs and their entries say in their origin which
-- step of an exchange they are: their ids are exchange:<36 characters>:<step>.
ALTER TABLE item ADD COLUMN result TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE item ALTER COLUMN result DROP DEFAULT;
UPDATE item SET result = json_build_object('outcome', 'ok', 'text', note), note = ''
WHERE kind = 'command' AND state = 'done' AND note NOT IN ('', 'session deleted');
UPDATE item SET result = regexp_replace(note, '"summary":', '"text":'), note = ''
WHERE owner <> '' AND state IN ('done', 'cancelled') AND note LIKE '{%';
UPDATE item SET result = CASE WHEN r.note LIKE '{"status":"error"%' THEN '{"outcome":"error"' WHEN r.note LIKE '{"status":"timeout"%' THEN '{"outcome":"timeout"' ELSE '{"outcome":"ok"' END
  || regexp_replace(regexp_replace(r.note, '^\{"status":"[a-z_]*"', ''), '^,"reply":', ',"text":')
FROM item AS r WHERE r.key = substr(item.id, 1, 46) || 'reply' AND r.note LIKE '{%'
  AND item.id LIKE 'exchange:____________________________________:0' AND item.kind = 'message' AND item.origin LIKE '{"kind":"agent"%';
DELETE FROM item WHERE key LIKE 'exchange:____________________________________:reply' AND kind = 'event' AND origin LIKE '{"kind":"agent"%';
UPDATE item SET origin = left(origin, -1) || ',"exchange":"' || substr(id, 10, 36) || '","turn":' || CASE substr(id, 47, 8) WHEN 'announce' THEN '-1' ELSE split_part(substr(id, 47), ':', 1) END || '}'
WHERE id LIKE 'exchange:____________________________________:%' AND kind = 'message' AND origin LIKE '{"kind":"agent"%';
UPDATE run SET origin = left(origin, -1) || ',"exchange":"' || substr(id, 10, 36) || '","turn":' || CASE substr(id, 47, 8) WHEN 'announce' THEN '-1' ELSE split_part(substr(id, 47), ':', 1) END || '}'
WHERE id LIKE 'exchange:____________________________________:%' AND origin LIKE '{"kind":"agent"%';
UPDATE entry SET origin = left(origin, -1) || ',"exchange":"' || substr(item, 10, 36) || '","turn":' || CASE substr(item, 47, 8) WHEN 'announce' THEN '-1' ELSE split_part(substr(item, 47), ':', 1) END || '}'
WHERE item LIKE 'exchange:____________________________________:%' AND origin LIKE '{"kind":"agent"%';

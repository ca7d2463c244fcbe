-- Shares that are bought, and sold for more within a minute.
CREATE MATERIALIZED VIEW profits AS
SELECT name, start_time AS bought_at, end_time AS sold_at, bought[0].price AS paid, sold[0].price AS got
FROM profits(TABLE(trades) PARTITION BY name ORDER BY (ts))
WHERE sold[0].price > bought[0].price

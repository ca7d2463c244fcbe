// The keywords of the languages, as their grammars have them, and the words that mean something at some places. A test reads the grammars.
export const KEYWORDS = {
  ceql:
    "AFTER ALL AND ANY AS ASC BETWEEN BY CASE CAST CONSUME DESC DISTINCT ELSE END EVENT EVENTS EVERY FALSE FILTER " +
    "FROM GAP GROUP IN IS KEEP LAST LIKE LIMIT LONG MATCH MAX NEXT NONE NOT NULL OR ORDER OVER PARTITION REGEXP " +
    "RLIKE SAMPLE SEED SELECT SHORT STRICT THEN TRUE WHEN WHERE WITHIN",
  sase:
    "AFTER AND AS ASC AVERAGE AVG BETWEEN BY CASE CAST COUNT DESC DISTINCT ELSE END EVENT EVERY FALSE FIRST GROUP " +
    "IN IS KEEP LAST LIKE LIMIT LONG MATCH MAX MEAN MIN NOT NULL ONLY OR ORDER OUTPUT OVER PATTERN REGEXP RETURN " +
    "RLIKE SAMPLE SEED SEQ SHORT SUM THEN TOTAL TRUE UNTIL WHEN WHERE WITHIN partition_contiguity skip_till_any_match " +
    "skip_till_next_match strict_contiguity",
  eql: "and any by false in join like maxspan not null or regex runs sample sequence true until where with",
};

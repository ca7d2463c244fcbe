"""Rules as files: queries with an id, a severity and tests of their own, kept in a folder (``docs/rules.md``)."""

from stretto.pipelines.rules.reading import read_rules
from stretto.pipelines.rules.ruleset import Alerts, Rule, RuleSet

__all__ = ["Alerts", "Rule", "RuleSet", "read_rules"]

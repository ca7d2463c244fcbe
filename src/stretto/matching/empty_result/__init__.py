"""Why a query has no match: warnings that name the condition that no event fulfils."""

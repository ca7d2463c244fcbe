"""EQL, the event query language of Elasticsearch: from text to a :class:`~stretto.query.eql.EqlQuery`.

>>> query = parse('sequence by host.id with maxspan=1m [file where true] [process where process.name : "cmd*"]')
>>> print(*query.stages, sep="; ")
file e1; process e2[`process.name` LIKE~ ("cmd*")]
>>> query.partition_by
('host.id',)
"""

from stretto.languages.eql.parser import parse

__all__ = ["parse"]

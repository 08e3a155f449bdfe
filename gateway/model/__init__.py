"""What can happen in a session: events, commands, asks, content, records, the grammar and the session view.

Other rooms say `import gateway.model as m` and `m.BlockDelta`. No I/O and no clock.
"""

from gateway.old_imports import renamed

from .agents import *
from .answer_text import *
from .asks import *
from .commands import *
from .content import *
from .enums import *
from .events import *
from .grammar import *
from .record import *
from .searched_texts import *
from .session_fold import *
from .session_summary import *
from .session_view import *
from .stream_closer import *

__getattr__ = renamed(__name__, {
    "Capabilities": "AgentCapabilities", "Topic": "AnnotationTopic", "Trigger": "CompactionTrigger",
    "Level": "NoticeLevel", "Entry": "HistoryEntry", "in_words": "format_answer", "in_markdown": "image_markdown",
    "encode": "encode_record", "decode": "decode_record", "read_json": "gateway.json_values:read_json",
})

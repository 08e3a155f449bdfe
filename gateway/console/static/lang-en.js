// The page's words in English. A key names where the words stand; {names} are filled in.

export const en = {
  title: "Dragoman console", now: "now", ok: "OK", cancel: "Cancel", close: "Close", copy: "Copy", copied: "Copied.", save: "Save", all: "All", again: "Try again", reload: "Reload",
  loading: "Loading …", details: "Details", theme: "Light or dark", shared: "Shared session, read only", not_found: "This session does not exist, or this key may not see it.",
  "shared.gone": "This link has expired, or was withdrawn.", unreachable: "The server cannot be reached. The page tries again by itself.",
  more_rows: "{n} more", more_characters: "{n} more characters", more_text: "Show more ({size} left)",

  "nav.label": "Pages", "nav.skip": "Skip to the content", "nav.sessions": "Sessions", "nav.mappings": "Mappings", "nav.examine": "Examine", "nav.server": "Server", "nav.clients": "Clients",
  "home.title": "One conversation, every protocol", "home.about": "Choose a session, or start one: you see what was said, the canonical events, and the frames that a client of each protocol gets for them.",
  "home.keys": "Press ? for all keys.", keyboard: "Keyboard",
  "keyboard.all": "n = new session\n/ = search sessions\nl = list of sessions\nc = write a message\np = protocols\n, = one record back\n. = one record on\n1 2 3 4 = sessions, mappings, examine, server\n↑ ↓ ← → = move in lists and columns\nAlt ← → = move a column\nEnter = open\nEsc = leave a field, close a dialog\n? = this list",

  "key.title": "This server wants a key", "key.label": "Key", "key.about": "The key is kept for this tab only. `dragoman keys add NAME` makes one.", "key.use": "Use this key", "key.wrong": "The server refused this key.", "key.forget": "forget the key",

  "sessions.label": "Sessions", "sessions.new": "New session", "sessions.import": "Import a session", "sessions.search": "Search title, text, id", "sessions.status": "Status", "sessions.any_status": "any status",
  "sessions.agent": "Agent", "sessions.any_agent": "any agent", "sessions.none": "No session here.", "sessions.asks": "{n} open", "sessions.turns": "{n} turns", "sessions.turn": "{n} turn", "sessions.watching": "A client of {dialect} is watching",
  "status.running": "running", "status.waiting": "waiting", "status.failed": "failed", "status.idle": "idle", "status.closed": "closed",

  "new.agent": "Agent", "new.tools": "Tools of this page", "new.tools_about": "Tools that you carry out yourself, as JSON: the agent calls one, and you fill in its result.", "new.example": "Insert an example", "new.create": "Create",

  "session.untitled": "Untitled session", "session.view": "View", "session.view.talk": "Conversation", "session.view.both": "Both", "session.view.wire": "Protocols", "session.back": "Back to the list", "session.aside": "Show or hide the list", "session.actions": "Actions of this session",
  "session.rename": "Rename", "session.title": "Title", "session.share": "Share a link", "session.share_about": "Whoever has this link can read the session until {time}.", "session.compact": "Compact the history", "session.copy_id": "Copy the session id",
  "session.export_jsonl": "Export as JSONL", "session.export_zip": "Export as ZIP", "session.delete": "Delete", "session.delete_sure": "The session and its log are deleted for all clients, in every protocol.", "session.gone": "The session was deleted.",
  "line.lost": "Connection lost. Reconnecting …", "line.back": "Connected again: resumed after record {seq}, nothing was missed.",

  "conversation.label": "Conversation", "conversation.empty": "Nothing was said yet.", "conversation.earlier": "Show earlier ({n})",
  "who.user": "You", "who.assistant": "Agent", "who.system": "System", "who.tool": "Tool", thinking: "Thinking …", thought: "Thought for {time}",
  picture: "Picture from the conversation", picture_at: "Picture at", picture_coming: "A picture is coming …", "card.address": "Card at", "card.title": "Card of the agent, in a sandbox", "card.show": "Show the card",
  usage: "{in} → {out} tokens", "usage.title": "Tokens that went in, and tokens that came out", "usage.thinking": ", {n} thinking", "usage.cache": ", {n} from the cache",
  "tool.input": "Arguments", "tool.output": "Output so far", "tool.result": "Result", "tool.meta": "For the page", "tool.writing": "being written", "tool.running": "running", "tool.pending": "pending", "tool.awaiting_input": "waiting for you", "tool.done": "done", "tool.failed": "failed", "tool.error": "failed", "tool.cancelled": "cancelled", "tool.torn": "broken off",
  "origin.mcp": "MCP", "origin.client": "client", "origin.provider": "provider",
  "outcome.completed": "completed", "outcome.failed": "failed", "outcome.interrupted": "interrupted", "turn.result": "Result of the turn",
  "stop.tool_use": "waits for a tool", "stop.needs_input": "waits for a person", "stop.max_tokens": "no tokens left", "stop.max_steps": "no steps left", "stop.refusal": "refused", "stop.interrupted": "interrupted", "stop.timeout": "timed out", "stop.error": "error",
  scope: "Sub-agent {name}", "scope.running": "running", "scope.idle": "idle", "scope.blocked": "blocked", "scope.ended": "ended", "fault.retryable": "can be tried again",
  compacted: "History compacted: {before} → {after} tokens", rewound: "Rewound to record {seq}.", closed: "The session is closed: {reason}.", custom: "Custom event", "command.interrupt": "Interrupted by a person", "command.compact": "Compaction asked for",
  "annotation.recommended": "Suggested questions", "annotation.preface": "Preface", "annotation.intent": "Intent", "annotation.billing": "Billing", "annotation.search": "Search", "annotation.knowledge": "Knowledge", "annotation.memory_refs": "Memories",

  "ask.question": "The agent asks", "ask.permission": "May the agent do this?", "ask.client_tool": "The agent calls your tool {name}.", "ask.continuation": "Shall the agent go on?", "ask.rollback": "Roll back?",
  "ask.own_words": "… or in your own words", "ask.own_words_for": "Own words for: {question}", "ask.answer": "Answer", "ask.dismiss": "Dismiss", "ask.unanswered": "Not answered yet: {question}", "ask.reason": "Reason (optional)", "ask.allow": "Allow", "ask.deny": "Deny",
  "ask.failed": "The tool failed", "ask.return": "Return the result", "ask.continue": "Go on", "ask.stop": "Stop here", "ask.roll_back_to": "Roll back to", "ask.roll_back": "Roll back", "ask.keep": "Keep everything", "ask.expires": "expires {time}",
  "ask.past": "(open at this point of the log)", "ask.too_late": "Somebody else has answered already.",
  "resolution.answered": "answered", "resolution.granted": "allowed", "resolution.denied": "denied", "resolution.returned": "result returned", "resolution.cancelled": "withdrawn", "resolution.expired": "expired",
  "form.value": "value", "form.needed": "required", "form.missing": "{name} is required.", "form.not_json": "{name} is not valid JSON.", "form.add": "Add", "form.remove": "Remove",

  "composer.label": "Message to the agent", "composer.placeholder": "Write to the agent. / shows its directives", "composer.attach": "Attach files", "composer.files": "Attached files", "composer.detach": "Remove {name}", "composer.directives": "Directives", "composer.hint": "Enter sends, Shift+Enter starts a line", "composer.send": "Send", "composer.stop": "Stop",

  "wire.label": "Protocols side by side", "wire.canonical": "canonical", "wire.columns": "Columns", "wire.column_menu": "Column {name}", "wire.search": "Search in frames", "wire.records": "{n} records", "wire.frames": "{n} frames, {size}", "wire.filtered": "filtered",
  "wire.hide": "Hide", "wire.move_left": "Move left", "wire.move_right": "Move right", "wire.all_events": "All events", "wire.due": "sent by a timer", "wire.dropped": "dropped: no word for {feature}", "wire.silent": "says nothing here",
  "detail.label": "The record in detail", "detail.record": "Record {seq}", "detail.look": "Form", "detail.pretty": "Pretty", "detail.raw": "Raw", "detail.curl": "As curl", "detail.cursor": "The cursor that a client resumes after", "detail.from": "from records {seqs}", "detail.row": "{cue} · {dialect}.yaml:{line}", "detail.open_table": "Open {file}, line {line}",
  "time.label": "Position in the log", "time.first": "To the start", "time.last": "To the end", "time.back": "One record back", "time.forward": "One record on", "time.play": "Play", "time.play_back": "Play backwards", "time.pause": "Pause", "time.speed": "Speed", "time.live": "Live", "time.where": "{at} / {of}", "time.reconnect": "Reconnect here",
  "reconnect.title": "At record {seq}", "reconnect.exchange": "This exchange as curl", "reconnect.exchange_about": "What a client of each protocol sends to bring about this record.", "reconnect.resume": "Reconnect here", "reconnect.about": "What a client of each protocol sends if its connection was cut after this record, and what it gets.", "reconnect.gets": "It gets {n} frames",

  "mappings.title": "Mappings", "mappings.losses": "Losses", "mappings.translate": "Translate", "mappings.grid": "What gets through", "mappings.grid_about": "What the table of each dialect declares. Choose a mark to read its note.", "mappings.feature": "feature", "mappings.no_note": "The table has no note on this.",
  "mappings.pairs": "Agent × client", "mappings.pairs_about": "An agent behind a server of one dialect, and a client of another: what is lost (✗) or arrives in another form (~) on the way.", "mappings.agent_client": "agent ↓ client →", "mappings.pair": "Agent of {agent}, client of {client}: {lost} lost, {degraded} degraded", "mappings.lost": "Lost", "mappings.degraded": "Degraded",
  "mappings.becomes": "What each event becomes in {dialect}", "mappings.search": "Search rows", "mappings.cue": "event or cue", "mappings.out": "becomes", "mappings.line": "line",
  "level.full": "arrives whole", "level.partial": "some of it arrives", "level.fallback": "arrives as something else", "level.dropped": "lost", "level.rejected": "refused",
  "translate.from": "Written in", "translate.input": "Event or frame", "translate.examples": "Examples", "translate.about": "Write a canonical event, or a frame of a dialect exactly as on the wire: all columns show what becomes of it.", "translate.added": "Added, so that the conversation is complete",

  "examine.title": "Examine a server", "examine.dialect": "Dialect", "examine.url": "Address", "examine.key": "Key", "examine.cases": "Requirements", "examine.this_gateway": "this gateway", "examine.run": "Examine", "examine.not_allowed": "This key may not start examinations. You can still read a report.", "examine.drop": "Drop a report or a recording here", "examine.open": "Open a file",
  "examine.past": "Past examinations", "examine.counts": "{passed} passed, {failed} failed", "examine.watch": "Watch", "examine.read": "Read", "examine.progress": "Progress", "examine.starting": "Starting …", "examine.cancel": "Cancel", "examine.not_a_report": "This file is neither a report nor a recording.",
  "report.requirements": "Requirements", "report.requirement": "Requirement", "report.outcome": "Outcome", "report.search": "Search requirements", "report.none": "No requirement fits.", "report.choose": "Choose a requirement.", "report.expected": "Expected:", "report.seen": "Seen:", "report.reason": "Reason:", "report.reproduce": "Reproduce", "report.transcript": "Transcript",
  "verdict.conforms": "conforms", "verdict.fails": "fails", "verdict.incomplete": "incomplete", "verdict.not testable": "not testable", "verdict.not applicable": "not applicable",

  "clients.title": "Who speaks what", "clients.about": "Clients are programs, as their requests name them. A feature counts if a client sent it or received it. Numbers are stored every few seconds, by day.", "clients.since": "Seen in the last", "clients.days": "{n} days", "clients.to": "If they moved to", "clients.nowhere": "–",
  "clients.dialect": "Dialect", "clients.client": "Client", "clients.key": "Key", "clients.requests": "Requests", "clients.last": "Last seen", "clients.features": "Features it uses", "clients.cost": "What it would lose", "clients.none": "No client was seen.", "clients.there": "speaks it", "clients.nothing": "nothing that it uses",
  "server.title": "Server", "server.since": "since {time}", "server.figures": "Figures", "server.dialects": "Dialects", "server.agents": "Agents", "server.limits": "Limits", "server.default": "default", "server.tools": "{n} tools",
  "figures.turns": "Turns running", "figures.streams": "Open streams", "figures.events": "Events per second", "figures.lag": "Lag of events", "figures.losses": "Losses per second", "figures.memory": "Memory",
  "keys.title": "Keys", "keys.name": "Name", "keys.user": "User", "keys.created": "Created", "keys.used": "Last used", "keys.never": "never", "keys.add": "New key", "keys.once": "This key is shown once. Copy it now.", "keys.revoke": "Revoke", "keys.revoke_sure": "Clients with the key {name} are cut off at once.",
  "warnings.title": "Warnings of the log", "warnings.none": "No warnings.",
};

// The published JavaScript client of Socket.IO as a client under test; what is Blade about it is this file.
const { io } = require("socket.io-client");
const url = process.env.DRAGOMAN_URL;
const token = process.env.DRAGOMAN_KEY;
const told = JSON.parse(process.env.DRAGOMAN_INSTRUCTION);
const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };

let session = "", last = 0, answer = "", asked = null, ended = null;
const children = new Set();

async function open() {
  const made = await fetch(`${url}/api/sessions`, { method: "POST", headers, body: JSON.stringify({ intent: "js" }) });
  session = (await made.json()).session_id;
}

const socket = io(url, { auth: { token } });
socket.on("connect", () => {
  const resume = last > 0 ? { after_sequence: last, resume: true } : { after_sequence: 0 };
  socket.emit("session:subscribe", { session_id: session, ...resume });
});
socket.onAny((name, event) => {
  if (event && event.stream_sequence !== undefined) {
    if (event.stream_sequence <= last) return;
    last = event.stream_sequence;
  }
  if (name === "turn:start" && event.parent_fork_tool_call_id) children.add(event.turn_id);
  if (name === "turn:patch") patch(event);
  if (name === "chat:end") end();
  if (name === "system:error" && typeof event.code === "number" && ended) ended();
});

function patch(event) {
  const { patch_type: kind, data } = event;
  if (kind === "add_content" && data.type === "text" && !children.has(event.turn_id)) {
    answer += data.text_delta;
    if (told.stop) socket.emit("chat:stop", { session_id: session });
  }
  if (kind === "add_tool_call" && data.status === "awaiting_answer") asked = data;
}

function end() {
  if (asked === null) return ended && ended();
  const { questions } = JSON.parse(asked.arguments);
  const selections = Object.fromEntries(questions.map((_, number) => [String(number), [told.option]]));
  const askuser_answer = { tool_call_id: asked.id, selections, custom: {} };
  asked = null;
  socket.emit("chat:send", { session_id: session, message: "", askuser_answer });
}

function send(text) {
  answer = "";
  return new Promise((done) => {
    ended = done;
    socket.emit("chat:send", { session_id: session, message: text, mode: "executing" });
  });
}

(async () => {
  await open();
  for (const message of told.messages) await send(message === "{answer}" ? answer : message);
  socket.close();
})();

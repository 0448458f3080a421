// The page: connects the parts, and finds out which model is served.
import { Attachments } from "./chat/attach.js";
import { CONTINUATION_TOKENS, Conversation } from "./chat/conversation.js";
import { Follow } from "./chat/follow.js";
import { keepSettings, keepTheme, readSettings, setSystemPrompt, showDefaults, systemPrompt, whySame } from "./chat/settings.js";
import { request, storeKey, storedKey } from "./chat/stream.js";
import { keepDrawers, toast } from "./drawers.js";
import { get } from "./dom.js";
import { watchServer } from "./panel/panel.js";
import { Chats } from "./store/chats.js";

const RETRY_MS = 1000;

let props = null; // of GET /props, once the model is loaded
let connecting = false;

const attachments = new Attachments({ say: toast, changed: showState });
const conversation = new Conversation(get("messages"), new Follow(get("messages"), get("to-end")), {
  settings: readSettings,
  system: systemPrompt,
  model: () => props?.model ?? "",
  same: () => (props ? whySame(props.defaults) : ""),
  focus: () => get("input").focus(),
  changed: showState,
  edited: () => chats.save(),
  grown: () => chats.saveSoon(),
});
const chats = new Chats(conversation, { system: systemPrompt, setSystem: setSystemPrompt, model: () => props?.model ?? "", toast });

function showState() {
  const busy = conversation.busy;
  const { used } = conversation;
  get("stop").hidden = !busy;
  get("send").hidden = busy;
  get("send").disabled = !props;
  get("empty").hidden = conversation.messages.length > 0;
  if (props) get("state").textContent = busy ? "answering" : "ready";
  get("context").hidden = !props || !used;
  if (!props || !used) return;
  get("context-meter").max = props.max_model_len;
  get("context-meter").value = used;
  get("context-text").textContent = `${used.toLocaleString("en")} of ${props.max_model_len.toLocaleString("en")} tokens`;
}

function showModel() {
  conversation.isChat = props.chat_format !== null;
  get("model").textContent = props.model;
  get("model").title = `context: ${props.max_model_len.toLocaleString("en")} tokens`;
  document.title = `${props.model} – Latte`;
  get("notice").hidden = conversation.isChat;
  showDefaults(props, conversation.isChat ? "" : CONTINUATION_TOKENS);
  conversation.showSame();
  if (!conversation.isChat)
    get("notice").textContent =
      `This model has no chat format, so it continues the text of all messages. (${props.chat_problem})`;
}

function showProblem(error) {
  props = null;
  panel.stale(true);
  const keyIsWrong = error.status === 401;
  get("state").textContent = keyIsWrong && !storedKey() ? "needs an API key" : error.message;
  get("key-form").hidden = !keyIsWrong;
  if (keyIsWrong) get("key").focus();
  showState();
  if (!keyIsWrong && !connecting) {
    connecting = true;
    setTimeout(connect, RETRY_MS);
  }
}

// Asks until the server is ready. A wrong key is not sent again.
async function connect() {
  try {
    props = await (await request("props")).json();
    connecting = false;
    showModel();
    get("key-form").hidden = true;
    showState();
  } catch (error) {
    connecting = false;
    showProblem(error);
  }
}

function send() {
  const input = get("input");
  if (!props || conversation.busy || !(input.value.trim() || attachments.files.length)) return;
  if (!conversation.send(input.value, attachments.files)) return;
  attachments.take();
  input.value = "";
  input.focus();
}

function stop() {
  conversation.stop();
  get("input").focus();
}

get("composer").onsubmit = (event) => {
  event.preventDefault();
  send();
};
get("input").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
};
get("stop").onclick = stop;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && conversation.busy && !document.querySelector(":popover-open")) stop();
});
get("new").onclick = () => {
  chats.startNew();
  get("input").focus();
};
get("key-form").onsubmit = (event) => {
  event.preventDefault();
  storeKey(get("key").value);
  get("key").value = "";
  connect().then(() => props && get("input").focus());
};
// Text that is nowhere else would be lost.
window.addEventListener("beforeunload", (event) => {
  const unsent = get("input").value.trim() || attachments.files.length || document.querySelector(".editor");
  if (unsent || conversation.busy || chats.wouldLose()) event.preventDefault();
});

keepTheme();
keepDrawers();
keepSettings(() => conversation.showSame());
const panel = watchServer(get("panel"), { engine: () => props?.engine, failed: showProblem });
showState();
await Promise.all([chats.start(), connect()]);
if (props) get("input").focus();

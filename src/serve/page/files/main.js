// The page: connects the parts, and finds out which model is served.
import { CONTINUATION_TOKENS, Conversation } from "./conversation.js";
import { watchServer } from "./panel.js";
import { keepSettings, keepTheme, readSettings, systemPrompt } from "./settings.js";
import { request, storeKey, storedKey } from "./stream.js";

const RETRY_MS = 1000;

const get = (id) => document.getElementById(id);
let props = null; // of GET /props, once the model is loaded

const conversation = new Conversation(get("messages"), {
  settings: readSettings,
  system: systemPrompt,
  changed: showState,
});

function showState() {
  const busy = conversation.busy;
  get("stop").hidden = !busy;
  get("send").disabled = busy || !props;
  if (props) get("state").textContent = busy ? "answering" : "ready";
}

function showModel() {
  conversation.isChat = props.chat_format !== null;
  get("model").textContent = `${props.model}, ${props.max_model_len.toLocaleString("en")} tokens`;
  get("notice").hidden = conversation.isChat;
  get("system-row").hidden = !conversation.isChat;
  get("max_tokens").placeholder = conversation.isChat ? "all that fit" : CONTINUATION_TOKENS;
  if (!conversation.isChat)
    get("notice").textContent =
      `This model has no chat format, so it continues the text of all messages. (${props.chat_problem})`;
}

function showProblem(error) {
  props = null;
  const keyIsWrong = error.status === 401;
  get("state").textContent = keyIsWrong && !storedKey() ? "needs an API key" : error.message;
  get("key-form").hidden = !keyIsWrong;
  if (keyIsWrong) get("key").focus();
  showState();
}

// Asks until the server is ready. A wrong key is not sent again.
async function connect() {
  try {
    props = await (await request("props")).json();
    showModel();
    get("key-form").hidden = true;
    showState();
  } catch (error) {
    showProblem(error);
    if (error.status !== 401) setTimeout(connect, RETRY_MS);
  }
}

function send() {
  const input = get("input");
  if (!props || !input.value.trim() || !conversation.send(input.value)) return;
  input.value = "";
  input.focus();
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
function stop() {
  conversation.stop();
  get("input").focus();
}
get("stop").onclick = stop;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && conversation.busy) stop();
});
get("new").onclick = () => {
  conversation.clear();
  get("input").focus();
};
get("key-form").onsubmit = (event) => {
  event.preventDefault();
  storeKey(get("key").value);
  get("key").value = "";
  connect();
};

keepTheme();
keepSettings();
showState();
watchServer(get("panel"), {
  engine: () => props?.engine,
  failed: (error) => {
    showProblem(error);
    if (error.status !== 401) setTimeout(connect, RETRY_MS);
  },
});
connect().then(() => props && get("input").focus());

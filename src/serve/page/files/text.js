// Shows the text of a message. It makes elements and text nodes only, so nothing in a text becomes markup. Of Markdown it
// knows blocks and pieces of code; everything else stays as it is written.

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

// → [{kind: "p" or "pre", text}]
function blocksOf(text) {
  const blocks = [];
  let fence = null;
  let lines = [];
  const end = (kind) => {
    const joined = lines.join("\n");
    lines = [];
    if (kind === "pre") blocks.push({ kind, text: joined });
    else for (const part of joined.split(/\n{2,}/)) if (part.trim()) blocks.push({ kind, text: part.replace(/^\n|\n$/g, "") });
  };
  for (const line of text.split("\n")) {
    const found = FENCE.exec(line);
    if (!fence && found && !found[2].includes("`")) {
      end("p");
      fence = found[1];
    } else if (fence && found && found[1].startsWith(fence) && !found[2].trim()) {
      end("pre");
      fence = null;
    } else {
      lines.push(line);
    }
  }
  end(fence ? "pre" : "p");
  return blocks;
}

function code(text) {
  const element = document.createElement("code");
  element.textContent = text;
  return element;
}

function elementOf({ kind, text }) {
  const element = document.createElement(kind);
  if (kind === "pre") {
    element.tabIndex = 0; // it may scroll
    element.append(code(text));
    return element;
  }
  for (const part of text.split(/(`[^`\n]+`)/))
    element.append(part.length > 2 && part.startsWith("`") && part.endsWith("`") ? code(part.slice(1, -1)) : part);
  return element;
}

const shown = new WeakMap(); // element of a block → its kind and text

// Replaces only the blocks that have changed, so that a growing text costs little.
export function showText(parent, text) {
  const blocks = blocksOf(text);
  blocks.forEach((block, i) => {
    const old = parent.children[i];
    const is = `${block.kind} ${block.text}`;
    if (old && shown.get(old) === is) return;
    const element = elementOf(block);
    shown.set(element, is);
    if (old) old.replaceWith(element);
    else parent.append(element);
  });
  while (parent.children.length > blocks.length) parent.lastElementChild.remove();
}

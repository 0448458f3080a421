// Changes elements into others with as few changes as possible: what is equal stays, so that a selection stays, and nothing flickers.

function sameAttributes(a, b) {
  if (a.attributes.length !== b.attributes.length) return false;
  return [...a.attributes].every(({ name, value }) => name === "class" || b.getAttribute(name) === value);
}

function morphText(old, made) {
  if (old.data === made.data) return;
  if (made.data.startsWith(old.data)) old.appendData(made.data.slice(old.data.length));
  else old.data = made.data;
}

function morphNode(old, made) {
  if (old.nodeType === Node.TEXT_NODE && made.nodeType === Node.TEXT_NODE) {
    morphText(old, made);
    return;
  }
  // Elements with a key (code, formulas) change after they were made.
  if (made.key !== undefined && old.key === made.key) return;
  const canStay = old.nodeName === made.nodeName && old.nodeType === Node.ELEMENT_NODE && sameAttributes(old, made) &&
    (made.key === undefined ? old.key === undefined : made.info.text?.startsWith(old.info?.text));
  if (!canStay) {
    old.replaceWith(made);
    return;
  }
  if (old.className !== made.className) old.className = made.className;
  if (made.key !== undefined) [old.key, old.info] = [made.key, made.info];
  morphChildren(old, 0, [...made.childNodes]);
}

// Lets the children of `parent` from number `from` on become `made`. more: children behind them may stay for the next call.
export function morphChildren(parent, from, made, more = false) {
  let old = parent.childNodes[from] ?? null;
  for (const node of made) {
    const next = old?.nextSibling ?? null;
    if (old) morphNode(old, node);
    else parent.append(node);
    old = next;
  }
  while (old && !more) {
    const next = old.nextSibling;
    old.remove();
    old = next;
  }
}

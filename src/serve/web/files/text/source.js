// The text as the lexer gets it. marked replaces leading tabs by spaces and CR LF by LF, in code too; here that happens before, so that
// the lexer changes no length, and tabs in code survive.

// A noncharacter, which no text contains: a leading tab in code.
const TAB = "\uFDD0";
const FENCE = /^((?:[ \t]|[-*+>][ \t]|\d{1,9}[.)][ \t])*)(`{3,}|~{3,})(.*)$/;
const TAB_COLUMNS = 4;

export const withTabs = (text) => text.replaceAll(TAB, "\t");

export class Source {
  constructor() {
    this.lines = ""; // complete lines, converted
    this.taken = 0; // characters of the text that are in `lines`
    this.fence = null; // {mark, columns} of the code that is open
    this.endsInCode = false;
  }

  // The converted form of the whole text, of which earlier calls have had a beginning.
  take(text) {
    const end = text.lastIndexOf("\n") + 1;
    if (end > this.taken) {
      const added = text.slice(this.taken, end).split("\n");
      added.pop();
      this.lines += added.map((line) => this.convert(line) + "\n").join("");
      this.taken = end;
    }
    const before = this.fence;
    const last = this.convert(text.slice(end));
    this.endsInCode = this.fence !== null;
    this.fence = before;
    return this.lines + last;
  }

  convert(line) {
    line = line.replace(/\r+$/, "").replaceAll("\r", " ");
    const found = FENCE.exec(line);
    if (this.fence) {
      const { mark, columns } = this.fence;
      if (found && found[2].startsWith(mark) && !found[3].trim()) this.fence = null;
      else return codeLine(line, columns);
    } else if (found && !(found[2][0] === "`" && found[3].includes("`"))) {
      this.fence = { mark: found[2], columns: found[1].replaceAll("\t", " ".repeat(TAB_COLUMNS)).length };
    }
    return line.replace(/^[ \t]+/, (space) => space.replaceAll("\t", " ".repeat(TAB_COLUMNS)));
  }
}

// The indentation of the fence is not part of the code.
function codeLine(line, columns) {
  let at = 0;
  let column = 0;
  for (; column < columns && (line[at] === " " || line[at] === "\t"); ++at) column += line[at] === "\t" ? TAB_COLUMNS : 1;
  return " ".repeat(column) + line.slice(at).replace(/^[ \t]+/, (space) => space.replaceAll("\t", TAB));
}

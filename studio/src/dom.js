// Elements from values. Text is always text: nothing that comes from events or queries is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

/** An element of HTML with attributes (`onclick` and the like are listeners) and children. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** The element with an id. */
export function at(id) {
  return document.getElementById(id);
}

/** A time in ISO form: its day, what of its clock is no zero at the end, and its zone. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d*[1-9])?(?:\.?0+)?([+-]\d\d:\d\d)?$/;

/** A value of an event in few characters. */
export function short(value, most = 60) {
  const said = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const text = said.replace(TIME, (all, day, clock, fraction = "", zone = "") => `${day} ${clock}${fraction}${zone === "+00:00" ? "Z" : zone}`);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A drop-down list of [value, text]. */
export function choice(label, options, chosen, onchange) {
  // Without autocomplete=off a page that is loaded anew is given the choice of before, as if somebody had made it then.
  const select = h("select", { "aria-label": label, autocomplete: "off", onchange: () => onchange(select.value) });
  for (const [value, text] of options) select.append(h("option", { value, selected: value === chosen }, text));
  return h("label", {}, `${label} `, select);
}

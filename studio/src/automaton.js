// The automaton: the server gives a graph in the dot language, dagre places it, and it is drawn here as SVG.
import dagre from "@dagrejs/dagre";
import { read } from "@dagrejs/graphlib-dot";
import { s } from "./dom.js";

const LINE = 14;
const LOOP = 26; // how high a loop is

function lines(label) {
  return (label ?? "").split(/\\n|\n/);
}

function widest(label, size) {
  return Math.max(0, ...lines(label).map((line) => [...line].length)) * size;
}

/** How high a loop is with its label. */
function tall(loop) {
  return LOOP + LINE * lines(loop.label).length;
}

/** Which side of its node a loop is on: 0, above, or 1, below. */
function sideOf(loop) {
  return loop.headport === "s" ? 1 : 0;
}

/** The loops of each node. */
function loopsOf(graph) {
  const loops = new Map();
  for (const edge of graph.edges()) {
    if (edge.v === edge.w) loops.set(edge.v, [...(loops.get(edge.v) ?? []), graph.edge(edge) ?? {}]);
  }
  return loops;
}

function placed(dot) {
  const graph = read(dot);
  const loops = loopsOf(graph);
  const laid = new dagre.graphlib.Graph({ multigraph: true })
    .setGraph({ rankdir: "LR", nodesep: 24, ranksep: 36, edgesep: 14, marginx: 12, marginy: 12, label: graph.graph().label })
    .setDefaultEdgeLabel(() => ({}));
  // Dagre takes no empty names, and what is grouped here only says where dot shall place it.
  const names = graph.nodes().filter((name) => !graph.children(name)?.length);
  const id = new Map(names.map((name, number) => [name, `n${number}`]));
  for (const name of names) {
    const node = graph.node(name) ?? {};
    const point = node.shape === "point" || node.shape === "none";
    const label = point ? "" : (node.label ?? name);
    const high = 16 + LINE * lines(label).length;
    const own = { high: point ? 6 : node.shape === "box" ? high : Math.max(high, 34) };
    own.wide = point ? 6 : Math.max(own.high, widest(label, 6.6) + 16);
    own.loops = loops.get(name) ?? [];
    const room = [0, 0]; // above it and below it
    for (const loop of own.loops) room[sideOf(loop)] += tall(loop);
    const width = Math.max(own.wide, ...own.loops.map((loop) => widest(loop.label, 6.2)));
    laid.setNode(id.get(name), { ...node, ...own, name, label, room, width, height: own.high + 2 * Math.max(...room) });
  }
  graph.edges().forEach((edge, number) => {
    if (edge.v === edge.w) return;
    const value = graph.edge(edge) ?? {};
    const label = value.label ?? "";
    const size = label ? { width: widest(label, 6.2) + 10, height: LINE * lines(label).length + 4 } : { width: 0, height: 0 };
    laid.setEdge(id.get(edge.v), id.get(edge.w), { ...value, label, labelpos: "c", ...size }, String(number));
  });
  dagre.layout(laid);
  return laid;
}

/** Where a line from a point to the middle of a node meets the node's outline. */
function meeting(node, from) {
  const [dx, dy] = [from.x - node.x, from.y - node.y];
  const round = node.shape !== "box";
  const [a, b] = [node.wide / 2, node.high / 2];
  const share = round && a === b ? a / Math.hypot(dx, dy) : Math.min(a / Math.abs(dx || 1e-9), b / Math.abs(dy || 1e-9));
  return { x: node.x + dx * share, y: node.y + dy * share };
}

function text(label, x, y, attributes) {
  const parts = lines(label);
  const top = y - ((parts.length - 1) * LINE) / 2 + 4;
  return s(
    "text",
    { x, "text-anchor": "middle", ...attributes },
    parts.map((line, number) => s("tspan", { x, y: top + number * LINE }, line)),
  );
}

/** The label of an edge, on a ground that hides the line behind it. */
function tag(label, x, y) {
  const [width, height] = [widest(label, 6.2) + 6, LINE * lines(label).length];
  return [
    s("rect", { class: "ground", x: x - width / 2, y: y - height / 2, width, height }),
    text(label, x, y, { class: "label" }),
  ];
}

function shape(node, attributes) {
  const { x, y, wide: width, high: height } = node;
  if (node.style === "invis" || node.shape === "point" || node.shape === "none") return s("circle", { class: "dot", cx: x, cy: y, r: 3 });
  const box = node.shape === "box";
  const outline = (inset) =>
    s("rect", {
      class: `state ${node.style ?? ""}`,
      x: x - width / 2 + inset,
      y: y - height / 2 + inset,
      width: width - 2 * inset,
      height: height - 2 * inset,
      rx: box ? 4 : height / 2 - inset,
    });
  const title = s("title", {}, lines(node.label).join("\n"));
  return s("g", attributes, outline(0), node.shape === "doublecircle" ? outline(3) : null, text(node.label, x, y, {}), title);
}

function path(points) {
  const [first, ...rest] = points;
  let made = `M${first.x},${first.y}`;
  for (let i = 0; i < rest.length - 1; i += 1) {
    const [now, next] = [rest[i], rest[i + 1]];
    made += ` Q${now.x},${now.y} ${(now.x + next.x) / 2},${(now.y + next.y) / 2}`;
  }
  const last = rest.at(-1);
  return `${made} L${last.x},${last.y}`;
}

/** Which variables' events an edge takes: those that it is marked with, or that of the state that it begins or takes for. */
function taken(label, source) {
  if (/^(begin|take)\b/.test(label ?? "")) return [source.replace(/\[.*\]$/, "")];
  return lines(label).flatMap((line) => {
    const [guard, marked] = line.split("•");
    if (marked === undefined) return [];
    return [guard.split("/")[0].trim(), ...marked.split(",").map((name) => name.trim())].filter(Boolean);
  });
}

function arrowOf(edge) {
  return edge.arrowhead === "empty" ? "url(#open)" : edge.arrowhead === "none" ? null : "url(#arrow)";
}

function kinds(edge, source, variables) {
  const lively = taken(edge.label, source).some((name) => variables.has(name));
  return `edge ${edge.style ?? ""} ${lively ? "lively" : ""}`;
}

/** The loops of a node, each side's one behind the other. */
function loops(node, variables) {
  const ends = [node.y - node.high / 2, node.y + node.high / 2];
  return node.loops.map((edge) => {
    const side = sideOf(edge);
    const way = side ? 1 : -1;
    const end = ends[side];
    const middle = end + way * ((LOOP + tall(edge)) / 2 - 6);
    const [left, right] = [node.x - 8, node.x + 8];
    const d = `M${left},${end - way * 2} C${left - 14},${end + way * LOOP} ${right + 14},${end + way * LOOP} ${right},${end - way * 2}`;
    ends[side] += way * tall(edge);
    return s("g", { class: kinds(edge, node.name, variables) }, s("path", { d, "marker-end": arrowOf(edge) }), edge.label ? tag(edge.label, node.x, middle) : null);
  });
}

/** What the last event of a partial match can be bound to that has come as far as each node. */
function reachedAt(laid) {
  const reached = new Map(laid.nodes().map((id) => [id, []]));
  for (const edge of laid.edges()) reached.get(edge.w).push(...taken(laid.edge(edge).label, laid.node(edge.v).name));
  for (const [id, names] of reached) {
    const node = laid.node(id);
    for (const loop of node.loops) names.push(...taken(loop.label, node.name));
  }
  return reached;
}

/** How high up and how low down what is drawn comes: dagre keeps as much room below a node as above it. */
function bounds(laid) {
  const nodes = laid.nodes().map((id) => laid.node(id));
  const edges = laid.edges().map((edge) => laid.edge(edge));
  const places = edges.flatMap(({ points, y, height }) => [...points.slice(1, -1).map((point) => point.y), ...(height ? [y - height / 2, y + height / 2] : [])]);
  const top = Math.min(...places, ...nodes.map(({ y, high, room }) => y - high / 2 - room[0]));
  return [top - 8, Math.max(...places, ...nodes.map(({ y, high, room }) => y + high / 2 + room[1])) + 8];
}

/** The picture; `variables` is a set of those whose edges are marked; `onstate` is called with what a clicked state's last event is. */
export function picture(dot, variables, onstate) {
  const laid = placed(dot);
  const { width = 0, label } = laid.graph();
  const [top, bottom] = bounds(laid);
  const edges = laid.edges().map((edge) => {
    const value = laid.edge(edge);
    const inner = value.points.slice(1, -1);
    const [source, target] = [laid.node(edge.v), laid.node(edge.w)];
    const points = [meeting(source, inner[0] ?? target), ...inner, meeting(target, inner.at(-1) ?? source)];
    const parts = [s("path", { d: path(points), "marker-end": arrowOf(value) })];
    if (value.label) parts.push(...tag(value.label, value.x, value.y));
    return s("g", { class: kinds(value, source.name, variables) }, parts);
  });
  const marker = (id) =>
    s(
      "marker",
      { id, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" },
      s("path", { d: "M0,0 L10,5 L0,10 z", class: id }),
    );
  const nodes = laid.nodes().map((id) => laid.node(id));
  const reached = reachedAt(laid);
  const choose = (id) => ({
    class: "node",
    tabindex: 0,
    role: "button",
    onclick: () => onstate(reached.get(id)),
    onkeydown: (key) => key.key === "Enter" && onstate(reached.get(id)),
  });
  const [wide, high] = [Math.max(width, widest(label, 6.2)), bottom - top + (label ? 24 : 0)];
  return s(
    "svg",
    { class: "automaton", viewBox: `0 ${top} ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "automaton" },
    s("defs", {}, marker("arrow"), marker("open")),
    edges,
    nodes.map((node) => loops(node, variables)),
    laid.nodes().map((id) => shape(laid.node(id), choose(id))),
    label ? text(label, wide / 2, bottom + 10, { class: "label" }) : null,
  );
}

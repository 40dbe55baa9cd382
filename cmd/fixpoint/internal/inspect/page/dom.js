// Building elements. Text of a recording enters the page through here only, as
// text nodes and attribute values: nothing in the page parses markup.

/** el makes an element: props are class, text, title, data, style, on and attributes. */
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  fill(node, props);
  append(node, children);
  return node;
}

/** svg makes an element of a drawing. */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  append(node, children);
  return node;
}

function fill(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    switch (name) {
      case 'class': node.className = value; break;
      case 'text': node.textContent = value; break;
      case 'data': for (const [k, v] of Object.entries(value)) if (v !== undefined) node.dataset[k] = v; break;
      case 'style': for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v); break;
      case 'on': for (const [k, v] of Object.entries(value)) node.addEventListener(k, v); break;
      default: node.setAttribute(name, value === true ? '' : value);
    }
  }
}

function append(node, children) {
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
}

/** replace gives node new children. */
export function replace(node, ...children) {
  node.textContent = '';
  append(node, children);
}

/** byId is document.getElementById for elements that index.html has. */
export const byId = (id) => document.getElementById(id);

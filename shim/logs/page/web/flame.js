// The flame graph: callers above what they call, widths by bytes. With several processes each is a frame of its own on top.

const frameHeight = 20;
const framesDrawn = 3000;  // at once; those that are narrower than a pixel are not drawn
const measures = [['peak', 'at the peak'], ['total', 'in total'], ['left', 'never freed']];

// Rows in preorder become a tree.
function treeFrom(rows) {
  const top = [];
  const open = [];
  for (const row of rows) {
    const node = {...row, children: [], parent: open[row.depth - 1] || null};
    (node.parent ? node.parent.children : top).push(node);
    open[row.depth] = node;
    open.length = row.depth + 1;
  }
  return top;
}

class FlameView {
  constructor() {
    this.measure = 'peak';
    choiceOf('flame-of', measures, this.measure, name => {
      this.measure = name;
      this.zoom(this.root);
    });
    this.listen();
  }

  showLanes(lanes) {
    const sum = (nodes, measure) => ({
      bytes: nodes.reduce((total, node) => total + node[measure].bytes, 0),
      count: nodes.reduce((total, node) => total + node[measure].count, 0),
    });
    const over = (name, children) => {
      const node = {name, library: '', file: '', isLane: true, children, parent: null, total: sum(children, 'total'), peak: sum(children, 'peak'), left: sum(children, 'left')};
      children.forEach(child => (child.parent = node));
      return node;
    };
    const tops = lanes.map(lane => over(lane.title, treeFrom(lane.flame)));
    this.root = tops.length === 1 ? tops[0] : over('all processes', tops);
    this.zoom(this.root);
  }

  zoom(node) {
    this.top = node;
    this.at = node;
    byId('flame-out').disabled = node === this.root;
    this.draw();
  }

  draw() {
    const box = byId('flame');
    const width = box.clientWidth;
    this.frames = [];
    const whole = this.top[this.measure].bytes;
    if (!whole) {
      box.replaceChildren(element('p', {class: 'note'}, ` Nothing was ${this.measure === 'left' ? 'left' : 'held'}.`));
      return;
    }
    const place = (node, depth, x, space) => {
      if (space < 1 || this.frames.length >= framesDrawn) {
        return;
      }
      this.frames.push({node, depth, x, space});
      const children = [...node.children].sort((a, b) => b[this.measure].bytes - a[this.measure].bytes);
      let left = x;
      for (const child of children) {
        const part = width * child[this.measure].bytes / whole;
        place(child, depth + 1, left, part);
        left += part;
      }
    };
    const parents = [];
    for (let node = this.top.parent; node; node = node.parent) {
      parents.unshift(node);
    }
    parents.forEach((node, depth) => this.frames.push({node, depth, x: 0, space: width}));
    place(this.top, parents.length, 0, width);
    const deepest = this.frames.reduce((most, frame) => Math.max(most, frame.depth), 0);
    box.replaceChildren(element('div', {class: 'size', style: `height:${(deepest + 1) * frameHeight}px`}),
      ...this.frames.map(frame => this.elementOf(frame)));
  }

  elementOf(frame) {
    const {node, depth, x, space} = frame;
    frame.element = element('div', {
      style: `left:${x.toFixed(1)}px;top:${depth * frameHeight}px;width:${Math.max(space, 1).toFixed(1)}px;background:${node.isLane ? themed('panel') : colourOfFrame(node)}`,
      onclick: () => this.zoom(node),
      onmousemove: event => this.tell(frame, event),
      onmouseleave: () => tip.hide(),
    }, space > 24 ? `${node.name}  ${bytes(node[this.measure].bytes)}` : '');
    return frame.element;
  }

  textOf(node) {
    const figures = node[this.measure];
    const lines = [node.name, `${bytes(figures.bytes)} ${measures.find(([name]) => name === this.measure)[1]}, ${counted(figures.count, 'block', 'blocks')}, ${percent(figures.bytes, this.root[this.measure].bytes)} of all`];
    if (node.library) {
      lines.push(`in ${node.library}`);
    }
    if (node.file) {
      lines.push(node.file);
    }
    return lines;
  }

  tell(frame, event) {
    const lines = this.textOf(frame.node);
    byId('flame-values').textContent = lines.join(' · ');
    if (event) {
      tip.show(lines.join('\n'), event);
    }
  }

  // The frame that a key leads to.
  next(key) {
    const index = this.frames.findIndex(frame => frame.node === this.at);
    const here = this.frames[Math.max(index, 0)];
    if (key === 'ArrowUp') {
      return this.frames.find(frame => frame.node === here.node.parent);
    }
    if (key === 'ArrowDown') {
      return this.frames.find(frame => frame.node.parent === here.node);
    }
    const row = this.frames.filter(frame => frame.depth === here.depth).sort((a, b) => a.x - b.x);
    return row[row.indexOf(here) + (key === 'ArrowRight' ? 1 : -1)];
  }

  listen() {
    const out = () => this.zoom(this.top.parent || this.root);
    byId('flame-out').addEventListener('click', out);
    byId('flame').addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        this.zoom(this.at);
      } else if (event.key === 'Escape' || event.key === 'Backspace') {
        out();
      } else if (event.key.startsWith('Arrow') && this.frames.length) {
        const frame = this.next(event.key);
        if (frame) {
          this.at = frame.node;
          this.tell(frame);
        }
      } else {
        return;
      }
      event.preventDefault();
      this.frames.forEach(frame => frame.element && frame.element.classList.toggle('is-at', frame.node === this.at));
      const at = this.frames.find(frame => frame.node === this.at);
      if (at && at.element) {
        at.element.scrollIntoView({block: 'nearest'});
      }
    });
    window.addEventListener('resize', () => this.draw());
  }
}

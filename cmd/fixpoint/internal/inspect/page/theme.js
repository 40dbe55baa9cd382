// Light and dark: as the system says, until somebody chooses.

import { byId } from './dom.js';

/** Theme sets data-theme on the document. */
export class Theme {
  constructor(app) {
    this.app = app;
    this.system = window.matchMedia('(prefers-color-scheme: dark)');
    this.chosen = recall();
    this.system.addEventListener('change', () => this.draw());
    byId('theme').addEventListener('click', () => this.toggle());
    this.draw();
  }

  get dark() { return this.chosen ? this.chosen === 'dark' : this.system.matches; }

  draw() {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    byId('theme').setAttribute('aria-label', `Theme: ${this.dark ? 'dark' : 'light'} (t)`);
    this.app.emit('theme');
  }

  toggle() {
    this.chosen = this.dark ? 'light' : 'dark';
    try {
      localStorage.setItem('fixpoint-theme', this.chosen);
    } catch {
      // A file's page may have no storage; the choice holds until it is closed.
    }
    this.draw();
  }
}

function recall() {
  try {
    const kept = localStorage.getItem('fixpoint-theme');
    return kept === 'dark' || kept === 'light' ? kept : undefined;
  } catch {
    return undefined;
  }
}

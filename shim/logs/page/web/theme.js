// Light or dark: as the system has it, until the reader chooses.

function startTheme(onChange) {
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try {
    chosen = window.localStorage.getItem('ration-theme');
  } catch {
    // A page that is opened as a file may have no storage.
  }
  const apply = () => {
    root.dataset.theme = chosen || (system.matches ? 'dark' : 'light');
    byId('theme').textContent = root.dataset.theme === 'dark' ? 'Light' : 'Dark';
  };
  apply();
  system.addEventListener('change', () => {
    apply();
    onChange();
  });
  byId('theme').addEventListener('click', () => {
    chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      window.localStorage.setItem('ration-theme', chosen);
    } catch {
      // It holds until the page is closed.
    }
    apply();
    onChange();
  });
}

// The filter of the report: what has all the words stays, and sections are unfolded where something was found.
const box = document.getElementById('filter');
const told = document.getElementById('found');
const items = [...document.querySelectorAll('[data-find]')].map((element) => {
  const shown = element.cloneNode(true);
  if (element.matches('article')) shown.querySelectorAll('details').forEach((wire) => wire.remove());
  return {element, words: (element.dataset.find + ' ' + shown.textContent).toLowerCase()};
});
const groups = [...document.querySelectorAll('.group, .section, main > section')].reverse();

function filter() {
  const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const ids = new Set();
  for (const {element, words} of items) {
    const stays = wanted.every((word) => words.includes(word));
    element.hidden = !stays;
    if (stays) ids.add(element.dataset.find.split(' ')[0]);
  }
  for (const group of groups) {
    const inside = [...group.querySelectorAll('[data-find]')];
    const found = inside.some((element) => !element.hidden);
    group.hidden = wanted.length > 0 && !found && group.contains(box) === false;
    if (group.matches('.section')) group.open = wanted.length > 0 && found;
  }
  told.textContent = wanted.length ? ids.size + ' of ' + told.dataset.all + ' requirements' : '';
}

box.addEventListener('input', filter);
filter();

// Appended to a copy of the page: says where things are, as JSON that HTML need not escape.
const box = (r) => [r.left + scrollX, r.top + scrollY, r.right + scrollX, r.bottom + scrollY];
const of = (element) => box(element.getBoundingClientRect());
const inside = ([a, b, c, d], [left, top, right, bottom]) => a >= left - 1 && b >= top - 1 && c <= right + 1 && d <= bottom + 1;
const extent = (shapes) => {
  const boxes = shapes.map(of);
  return [0, 1, 2, 3].map((side) => (side < 2 ? Math.min : Math.max)(...boxes.map((b) => b[side])));
};
const chart = (figure) => {
  const svg = figure.querySelector("svg");
  const around = of(svg);
  const scale = (around[2] - around[0]) / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].map((text) => ({
    text: text.textContent.trim(), size: parseFloat(getComputedStyle(text).fontSize) * scale, box: of(text),
  }));
  const meet = (a, b) => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1 && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1.5;
  const series = (group) => {
    const place = extent([...group.querySelectorAll("polyline, polygon, circle")]);
    return { name: group.dataset.name, box: place, inside: inside(place, around) };
  };
  return {
    id: figure.id, box: around, frame: of(figure), ratio: scale,
    smallest: Math.min(...texts.map((text) => text.size)),
    texts: texts.length,
    outside: texts.filter((text) => !inside(text.box, around)).map((text) => text.text),
    meeting: texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => meet(a.box, b.box)).map((b) => `${a.text} / ${b.text}`)),
    series: [...svg.querySelectorAll("g.series")].map(series),
    entries: [...svg.querySelectorAll("g.entry")].map((group) => ({
      ...series(group), label: group.querySelector("text").textContent.trim(), label_box: of(group.querySelector("text")),
      colour: group.querySelector("polyline").getAttribute("stroke"),
    })),
  };
};
const wrong = FILES.filter((file) => {
  const parsed = new DOMParser().parseFromString(file, "image/svg+xml");
  return parsed.querySelector("parsererror") || parsed.documentElement.namespaceURI !== "http://www.w3.org/2000/svg";
});
const measured = {
  width: innerWidth, scroll: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight,
  malformed: wrong.length, files: FILES.length, charts: [...document.querySelectorAll("figure")].filter((f) => f.offsetParent).map(chart),
};
const place = document.createElement("pre");
place.id = "measured";
place.textContent = JSON.stringify(measured).replace(/[<>&\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
parent.document.body.append(place);

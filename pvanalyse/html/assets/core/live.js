// A page that 'pvanalyse open' serves is loaded again when its server has another; see pvanalyse/html/serving.py.

function watchServer() {
  if (!("live" in document.documentElement.dataset)) return;
  let known = null;
  new EventSource("events").onmessage = ({ data }) => {
    if (known !== null && data !== known) location.reload();
    known = data;
  };
}

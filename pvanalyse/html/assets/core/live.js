// A page that 'pvanalyse open' serves is loaded again when its server has another; see pvanalyse/html/serving.py.

function watchServer() {
  if (!("live" in document.documentElement.dataset)) return;
  const mine = document.documentElement.dataset.live;
  new EventSource("events").onmessage = ({ data }) => {
    if (data !== mine) location.reload();
  };
}

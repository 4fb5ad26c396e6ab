# needs: node
cat > n.js <<'JS'
const fs = require("fs");
fs.writeFileSync("n.txt", "x".repeat(1e5));
console.log(fs.readFileSync("in/words").length, fs.statSync("n.txt").size);
fs.promises.readFile("in/numbers").then(b => console.log(b.length));
JS
node n.js

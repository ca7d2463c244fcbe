// Unpacks Chromium, and prints where it is, as JSON.
import chromium from "@sparticuz/chromium";

console.log(JSON.stringify(await chromium.executablePath()));

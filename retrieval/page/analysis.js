// Histogram and spectrum of samples.

export function histogram(values, bins = 60) {
  const good = values.filter((value) => value !== null && Number.isFinite(value));
  if (!good.length) return { x: [], y: [] };
  let low = Infinity, high = -Infinity;
  for (const value of good) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const width = (high - low) / bins;
  const counts = new Array(bins).fill(0);
  for (const value of good) counts[Math.min(bins - 1, Math.floor((value - low) / width))] += 1;
  return { x: counts.map((_, index) => low + (index + 0.5) * width), y: counts };
}

// Amplitudes by frequency in Hz: samples are interpolated linearly on an even raster, the mean is subtracted,
// and a Hann window applied. A sine of amplitude 1 has a peak of 1.
export function spectrum(times, values) {
  const points = [];
  values.forEach((value, index) => {
    if (value !== null && Number.isFinite(value)) points.push([times[index], value]);
  });
  if (points.length < 16) return { x: [], y: [] };
  const n = 2 ** Math.min(16, Math.floor(Math.log2(points.length)));
  const begin = points[0][0], step = (points[points.length - 1][0] - begin) / (n - 1);
  if (!(step > 0)) return { x: [], y: [] };
  const real = new Float64Array(n), imaginary = new Float64Array(n);
  let place = 0, mean = 0;
  for (let index = 0; index < n; index++) {
    const time = begin + index * step;
    while (place < points.length - 2 && points[place + 1][0] < time) place++;
    const [t0, v0] = points[place], [t1, v1] = points[place + 1];
    real[index] = t1 === t0 ? v1 : v0 + ((v1 - v0) * (time - t0)) / (t1 - t0);
    mean += real[index] / n;
  }
  for (let index = 0; index < n; index++) {
    real[index] = (real[index] - mean) * (0.5 - 0.5 * Math.cos((2 * Math.PI * index) / (n - 1)));
  }
  transform(real, imaginary);
  const frequencies = [], amplitudes = [];
  for (let index = 1; index < n / 2; index++) {
    frequencies.push(index / (n * step) * 1000);
    // the window halves the amplitude
    amplitudes.push((4 / n) * Math.hypot(real[index], imaginary[index]));
  }
  return { x: frequencies, y: amplitudes };
}

// The fast Fourier transform of Cooley and Tukey, in place; the length is a power of two.
function transform(real, imaginary) {
  const n = real.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let length = 2; length <= n; length <<= 1) {
    const angle = (-2 * Math.PI) / length;
    for (let start = 0; start < n; start += length) {
      for (let k = 0; k < length / 2; k++) {
        const cos = Math.cos(angle * k), sin = Math.sin(angle * k);
        const a = start + k, b = a + length / 2;
        const re = real[b] * cos - imaginary[b] * sin, im = real[b] * sin + imaginary[b] * cos;
        real[b] = real[a] - re; imaginary[b] = imaginary[a] - im;
        real[a] += re; imaginary[a] += im;
      }
    }
  }
}

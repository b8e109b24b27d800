//! The pixels of a browser's screenshot.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;

/// A picture of 8 bits for each of red, green and blue.
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Decodes what browsers write: PNG with 8 bits a channel, with or without transparency, not interlaced.
    pub(super) fn read(place: &Path) -> Self {
        let file = fs::read(place).unwrap();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n", "not a PNG");
        let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut header, mut packed) = (8, Vec::new(), Vec::new());
        while at < file.len() {
            let (length, kind) = (word(at), &file[at + 4..at + 8]);
            let content = &file[at + 8..at + 8 + length];
            match kind {
                b"IHDR" => header = content.to_vec(),
                b"IDAT" => packed.extend_from_slice(content),
                _ => {}
            }
            at += 12 + length;
        }
        let (width, height) = (word(16), word(20));
        let channels = match header[8..13] {
            [8, 2, 0, 0, 0] => 3,
            [8, 6, 0, 0, 0] => 4,
            ref other => panic!("a PNG of another kind: {other:?}"),
        };
        let mut rows = Vec::new();
        ZlibDecoder::new(packed.as_slice()).read_to_end(&mut rows).unwrap();
        let stride = width * channels;
        assert_eq!(rows.len(), height * (stride + 1));
        let mut above = vec![0; stride];
        let mut pixels = Vec::with_capacity(width * height);
        for row in rows.chunks_exact_mut(stride + 1) {
            let (filter, row) = row.split_first_mut().unwrap();
            for at in 0..stride {
                let (left, corner) = if at < channels { (0, 0) } else { (row[at - channels], above[at - channels]) };
                let guess = match *filter {
                    0 => 0,
                    1 => left,
                    2 => above[at],
                    3 => ((u16::from(left) + u16::from(above[at])) / 2) as u8,
                    4 => paeth(left, above[at], corner),
                    other => panic!("PNG filter {other}"),
                };
                row[at] = row[at].wrapping_add(guess);
            }
            above.copy_from_slice(row);
            pixels.extend(row.chunks_exact(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
        }
        Self { width, height, pixels }
    }

    /// Counts the pixels of a rectangle (left, top, right, bottom) that are so.
    pub(super) fn count(&self, [left, top, right, bottom]: [f64; 4], so: impl Fn([u8; 3]) -> bool) -> usize {
        let clip = |from: f64, to: f64, end: usize| from.max(0.0) as usize..(to.max(0.0).ceil() as usize).min(end);
        let columns = clip(left, right, self.width);
        let rows = clip(top, bottom, self.height);
        rows.map(|row| columns.clone().filter(|column| so(self.pixels[row * self.width + column])).count()).sum()
    }
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(above) - i16::from(corner);
    [left, above, corner].into_iter().min_by_key(|&near| (guess - i16::from(near)).abs()).unwrap()
}

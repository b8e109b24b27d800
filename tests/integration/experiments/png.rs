//! The pixels of a browser's screenshot.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use png::{BitDepth, ColorType, Decoder};

/// A picture of 8 bits for each of red, green and blue.
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Decodes what browsers write, with or without transparency.
    pub(super) fn read(place: &Path) -> Self {
        let mut reader = Decoder::new(BufReader::new(File::open(place).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(frame.bit_depth, BitDepth::Eight);
        let channels = match frame.color_type {
            ColorType::Rgb => 3,
            ColorType::Rgba => 4,
            other => panic!("a screenshot of {other:?}"),
        };
        let pixels = bytes.chunks_exact(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Self { width: frame.width as usize, height: frame.height as usize, pixels }
    }

    /// How many pixels of a rectangle (left, top, right, bottom) are so.
    pub(super) fn count(&self, [left, top, right, bottom]: [f64; 4], so: impl Fn([u8; 3]) -> bool) -> usize {
        let clip = |from: f64, to: f64, end: usize| from.max(0.0) as usize..(to.max(0.0).ceil() as usize).min(end);
        let columns = clip(left, right, self.width);
        let rows = clip(top, bottom, self.height);
        rows.map(|row| columns.clone().filter(|column| so(self.pixels[row * self.width + column])).count()).sum()
    }
}

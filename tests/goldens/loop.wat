(module
  (type (;0;) (func (param i32 i32 i32)))
  (type (;1;) (func (param i32)))
  (type (;2;) (func))
  (import "env" "memory" (memory (;0;) 1))
  (func (;0;) (type 0) (param i32 i32 i32)
    (local i32 i32 i32 i32 i32 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128)
    i32.const 0
    local.set 3
    local.get 0
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 4
    local.get 1
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 5
    local.get 2
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 6
    i32.const 0
    local.set 7
    block  ;; label = @1
      loop  ;; label = @2
        local.get 7
        i32.const 4
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 4
        v128.load align=4
        v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
        f32x4.mul
        local.tee 8
        local.set 9
        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
        local.get 8
        f32x4.abs
        local.tee 10
        local.get 10
        v128.const i32x4 0x3f22f983 0x3f22f983 0x3f22f983 0x3f22f983
        f32x4.mul
        v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
        f32x4.add
        local.tee 11
        v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
        f32x4.sub
        local.tee 12
        v128.const i32x4 0x3fc90000 0x3fc90000 0x3fc90000 0x3fc90000
        f32x4.mul
        f32x4.sub
        local.get 12
        v128.const i32x4 0x39fe0000 0x39fe0000 0x39fe0000 0x39fe0000
        f32x4.mul
        f32x4.sub
        local.tee 13
        local.get 12
        v128.const i32x4 0xb52c0000 0xb52c0000 0xb52c0000 0xb52c0000
        f32x4.mul
        local.tee 14
        f32x4.sub
        local.tee 15
        local.get 12
        v128.const i32x4 0x30880000 0x30880000 0x30880000 0x30880000
        f32x4.mul
        local.tee 16
        f32x4.sub
        local.tee 17
        local.get 13
        local.get 15
        f32x4.sub
        local.get 14
        f32x4.sub
        local.get 15
        local.get 17
        f32x4.sub
        local.get 16
        f32x4.sub
        f32x4.add
        local.get 12
        v128.const i32x4 0x2c34611a 0x2c34611a 0x2c34611a 0x2c34611a
        f32x4.mul
        f32x4.sub
        f32x4.add
        v128.const i32x4 0x3f4ccccd 0x3f4ccccd 0x3f4ccccd 0x3f4ccccd
        f32x4.min
        v128.const i32x4 0xbf4ccccd 0xbf4ccccd 0xbf4ccccd 0xbf4ccccd
        f32x4.max
        local.tee 18
        local.get 18
        f32x4.mul
        local.tee 19
        v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
        f32x4.mul
        local.tee 20
        f32x4.sub
        local.tee 21
        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
        local.get 21
        f32x4.sub
        local.get 20
        f32x4.sub
        local.get 19
        local.get 19
        f32x4.mul
        v128.const i32x4 0x3d2aaaa5 0x3d2aaaa5 0x3d2aaaa5 0x3d2aaaa5
        v128.const i32x4 0xbab60614 0xbab60614 0xbab60614 0xbab60614
        v128.const i32x4 0x37ccf406 0x37ccf406 0x37ccf406 0x37ccf406
        local.get 19
        f32x4.mul
        f32x4.add
        local.get 19
        f32x4.mul
        f32x4.add
        f32x4.mul
        f32x4.add
        f32x4.add
        local.get 18
        local.get 18
        local.get 19
        f32x4.mul
        v128.const i32x4 0xbe2aaaa3 0xbe2aaaa3 0xbe2aaaa3 0xbe2aaaa3
        v128.const i32x4 0x3c0883bd 0x3c0883bd 0x3c0883bd 0x3c0883bd
        v128.const i32x4 0xb94caa52 0xb94caa52 0xb94caa52 0xb94caa52
        local.get 19
        f32x4.mul
        f32x4.add
        local.get 19
        f32x4.mul
        f32x4.add
        f32x4.mul
        f32x4.add
        local.get 11
        local.tee 22
        v128.const i32x4 0x00000001 0x00000001 0x00000001 0x00000001
        v128.and
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        i32x4.ne
        v128.bitselect
        local.get 22
        i32.const 30
        i32x4.shl
        local.get 8
        v128.xor
        v128.const i32x4 0x80000000 0x80000000 0x80000000 0x80000000
        v128.and
        v128.xor
        local.set 23
        local.get 5
        local.get 9
        v128.store align=4
        local.get 6
        local.get 23
        v128.store align=4
        local.get 4
        i32.const 16
        i32.add
        local.set 4
        local.get 5
        i32.const 16
        i32.add
        local.set 5
        local.get 6
        i32.const 16
        i32.add
        local.set 6
        local.get 7
        i32.const 4
        i32.add
        local.set 7
        br 0 (;@2;)
      end
    end)
  (func (;1;) (type 1) (param i32)
    (local i32 i32 i32 v128)
    i32.const 0
    local.set 1
    local.get 0
    local.get 1
    i32.const 2
    i32.shl
    i32.add
    local.set 2
    i32.const 0
    local.set 3
    block  ;; label = @1
      loop  ;; label = @2
        local.get 3
        i32.const 4
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
        local.set 4
        local.get 2
        local.get 4
        v128.store align=4
        local.get 2
        i32.const 16
        i32.add
        local.set 2
        local.get 3
        i32.const 4
        i32.add
        local.set 3
        br 0 (;@2;)
      end
    end)
  (func (;2;) (type 0) (param i32 i32 i32)
    (local i32 i32 i32 i32 i32 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128)
    i32.const 0
    local.set 3
    local.get 0
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 4
    local.get 1
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 5
    local.get 2
    local.get 3
    i32.const 2
    i32.shl
    i32.add
    local.set 6
    i32.const 0
    local.set 7
    block  ;; label = @1
      loop  ;; label = @2
        local.get 7
        i32.const 4
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 4
        v128.load align=4
        local.get 5
        v128.load align=4
        local.tee 8
        local.get 8
        v128.const i32x4 0x3f22f983 0x3f22f983 0x3f22f983 0x3f22f983
        f32x4.mul
        v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
        f32x4.add
        local.tee 9
        v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
        f32x4.sub
        local.tee 10
        v128.const i32x4 0x3fc90000 0x3fc90000 0x3fc90000 0x3fc90000
        f32x4.mul
        f32x4.sub
        local.get 10
        v128.const i32x4 0x39fe0000 0x39fe0000 0x39fe0000 0x39fe0000
        f32x4.mul
        f32x4.sub
        local.tee 11
        local.get 10
        v128.const i32x4 0xb52c0000 0xb52c0000 0xb52c0000 0xb52c0000
        f32x4.mul
        local.tee 12
        f32x4.sub
        local.tee 13
        local.get 10
        v128.const i32x4 0x30880000 0x30880000 0x30880000 0x30880000
        f32x4.mul
        local.tee 14
        f32x4.sub
        local.tee 15
        local.get 11
        local.get 13
        f32x4.sub
        local.get 12
        f32x4.sub
        local.get 13
        local.get 15
        f32x4.sub
        local.get 14
        f32x4.sub
        f32x4.add
        local.get 10
        v128.const i32x4 0x2c34611a 0x2c34611a 0x2c34611a 0x2c34611a
        f32x4.mul
        f32x4.sub
        f32x4.add
        v128.const i32x4 0x3f4ccccd 0x3f4ccccd 0x3f4ccccd 0x3f4ccccd
        f32x4.min
        v128.const i32x4 0xbf4ccccd 0xbf4ccccd 0xbf4ccccd 0xbf4ccccd
        f32x4.max
        local.tee 16
        local.get 16
        local.get 16
        local.get 16
        f32x4.mul
        local.tee 17
        f32x4.mul
        v128.const i32x4 0xbe2aaaa3 0xbe2aaaa3 0xbe2aaaa3 0xbe2aaaa3
        v128.const i32x4 0x3c0883bd 0x3c0883bd 0x3c0883bd 0x3c0883bd
        v128.const i32x4 0xb94caa52 0xb94caa52 0xb94caa52 0xb94caa52
        local.get 17
        f32x4.mul
        f32x4.add
        local.get 17
        f32x4.mul
        f32x4.add
        f32x4.mul
        f32x4.add
        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
        local.get 17
        v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
        f32x4.mul
        local.tee 18
        f32x4.sub
        local.tee 19
        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
        local.get 19
        f32x4.sub
        local.get 18
        f32x4.sub
        local.get 17
        local.get 17
        f32x4.mul
        v128.const i32x4 0x3d2aaaa5 0x3d2aaaa5 0x3d2aaaa5 0x3d2aaaa5
        v128.const i32x4 0xbab60614 0xbab60614 0xbab60614 0xbab60614
        v128.const i32x4 0x37ccf406 0x37ccf406 0x37ccf406 0x37ccf406
        local.get 17
        f32x4.mul
        f32x4.add
        local.get 17
        f32x4.mul
        f32x4.add
        f32x4.mul
        f32x4.add
        f32x4.add
        local.get 9
        local.tee 20
        v128.const i32x4 0x00000001 0x00000001 0x00000001 0x00000001
        v128.and
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        i32x4.ne
        v128.bitselect
        local.get 20
        v128.const i32x4 0x00000001 0x00000001 0x00000001 0x00000001
        i32x4.add
        i32.const 30
        i32x4.shl
        v128.const i32x4 0x80000000 0x80000000 0x80000000 0x80000000
        v128.and
        v128.xor
        f32x4.mul
        v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
        f32x4.mul
        local.set 21
        local.get 6
        local.get 21
        v128.store align=4
        local.get 4
        i32.const 16
        i32.add
        local.set 4
        local.get 5
        i32.const 16
        i32.add
        local.set 5
        local.get 6
        i32.const 16
        i32.add
        local.set 6
        local.get 7
        i32.const 4
        i32.add
        local.set 7
        br 0 (;@2;)
      end
    end)
  (func (;3;) (type 2)
    (local i32 i32 i32 i32)
    i32.const 5
    local.set 0
    i32.const 0
    local.set 1
    block  ;; label = @1
      loop  ;; label = @2
        local.get 1
        local.get 0
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        i32.const 192
        local.get 1
        i32.const 32
        i32.mul
        i32.const 192
        call 0
        local.get 1
        i32.const 1
        i32.add
        local.set 1
        br 0 (;@2;)
      end
    end
    i32.const 192
    call 1
    i32.const 5
    local.set 2
    local.get 2
    local.set 3
    block  ;; label = @1
      loop  ;; label = @2
        i32.const 0
        local.get 3
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 3
        i32.const -1
        i32.add
        local.set 3
        i32.const 192
        local.get 3
        i32.const 32
        i32.mul
        i32.const 192
        call 2
        br 0 (;@2;)
      end
    end)
  (func (;4;) (type 2)
    call 3)
  (export "run" (func 4)))

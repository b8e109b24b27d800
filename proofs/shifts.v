(* Rings and shifts, and cuts that all worlds decide: theorem A for leaves that were tried and failed.

   Every ring of at least l people has l different shifts, of which one is 0. World i of a part gives everybody the value of the person so many places on in
   their ring. A cut passes if no value makes up more than 1/l of a side in any of the l worlds. Of a leaf that failed, the reader sees the groups, the
   circles, and the unordered set of the l worlds. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts turns.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Shifts.

Variables (n w : nat) (V L Z : finType) (U : eqType).
Notation l := w.+1.
Implicit Types (A B X : {set 'I_n}) (r q c : {perm 'I_n}) (t : table n V).

Definition shifts := {ffun {set 'I_n} -> {ffun 'I_l -> 'I_n.+1}}.

Definition valid_ring (h : shifts) X := [&& h X ord0 == ord0, [forall i, h X i < #|X|] & injectiveb (h X)].
Definition valid (h : shifts) := [forall X : {set 'I_n}, (l <= #|X|) ==> valid_ring h X].

(* A tie, the order in which people are dealt, the order of circles, and the shifts of each ring. *)
Definition lot := (Z * {perm 'I_n} * {perm 'I_n} * shifts)%type.

Definition act r (x : lot) : lot := (x.1.1.1, r * x.1.1.2, r * x.1.2, [ffun X : {set 'I_n} => x.2 (r @: X)]).

Variable choose : {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Hypothesis two : forall A k A1 A2, choose A k = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Hypothesis one : one_of_each plan.

Section Part.

Variables (A : {set 'I_n}) (t : table n V) (x : lot).

Definition label := ring_of plan A t x.1.1.1 x.1.1.2.
Definition ring y := members A label (label y).

(* The person whose value y carries if rings turn by so many places. *)
Definition turned (d : {set 'I_n} -> nat) y := if y \in A then ahead (ring y) x.1.2 (d (ring y)) y else y.

Lemma in_ring y : y \in A -> y \in ring y.
Proof. by move=> yA; rewrite inE yA eqxx. Qed.

Lemma turned_in d y : (turned d y \in A) = (y \in A).
Proof.
rewrite /turned; case: ifP => [yA|-> //].
by have := ahead_in x.1.2 (d (ring y)) (in_ring yA); rewrite inE => /andP[].
Qed.

Lemma turned_label d y : y \in A -> label (turned d y) = label y.
Proof. by move=> yA; rewrite /turned yA; have := ahead_in x.1.2 (d (ring y)) (in_ring yA); rewrite inE => /andP[_ /eqP]. Qed.

Lemma turned_ring d y : y \in A -> ring (turned d y) = ring y.
Proof. by move=> yA; rewrite /ring turned_label. Qed.

Lemma turned_inj d : injective (turned d).
Proof.
move=> y z same; have : (y \in A) = (z \in A) by rewrite -(turned_in d y) same turned_in.
have [yA /esym zA|yA /esym zA] := boolP (y \in A); last by move: same; rewrite /turned (negPf yA) zA.
have rings : ring y = ring z by rewrite -(turned_ring d yA) same turned_ring.
move: same; rewrite /turned yA zA rings => /ahead_inj; apply; last exact: in_ring.
by rewrite -rings in_ring.
Qed.

Definition turn d := perm (@turned_inj d).

Definition world (i : 'I_l) y := t (turned (fun X => x.2 X i) y).

Definition pass A1 A2 := [forall i, forall v,
  (l * #|[set y in A1 | world i y == v]| <= #|A1|) && (l * #|[set y in A2 | world i y == v]| <= #|A2|)].

Definition circles : {ffun 'I_n -> 'I_n} := [ffun y => turned (fun=> 1%N) y].

Definition of_world i : {ffun 'I_n -> option V} := [ffun y => if y \in A then Some (world i y) else None].
Definition worlds := [set of_world i | i : 'I_l].

Definition failed := ({set {set 'I_n} * {set V}} * {ffun 'I_n -> 'I_n} * {set {ffun 'I_n -> option V}})%type.
Definition shows : failed := (groups A label t, circles, worlds).

End Part.

(* What leaves show that were not tried is another matter: it follows from the part, its values and its lots. *)
Variable untried : {set 'I_n} -> table n V -> lot -> U.
Hypothesis untried_still : forall A t x r, still r A -> untried A (moved t r) (act r x) = untried A t x.

Definition try A t x : (failed + U) + {set 'I_n} * {set 'I_n} :=
  if choose A (counts A t) is Some (A1, A2) then
    if pass A t x A1 A2 then inr (A1, A2) else inl (inl (shows A t x))
  else inl (inr (untried A t x)).

Lemma try_two : cuts_in_two try.
Proof.
move=> A t x A1 A2; rewrite /try; case at_A : (choose _ _) => [[B1 B2]|//].
by case: ifP => // _ [<- <-]; apply: two at_A.
Qed.

Section Moved.

Variables (A : {set 'I_n}) (t : table n V) (x : lot) (r : {perm 'I_n}).
Hypothesis rA : stays r A.

Lemma label_moved y : label A (moved t r) (act r x) y = label A t x (r y).
Proof. exact: ring_of_moved. Qed.

Lemma ring_moved y z : (z \in ring A (moved t r) (act r x) y) = (r z \in ring A t x (r y)).
Proof. by rewrite !inE !label_moved (staysP rA). Qed.

Lemma ring_image y : r @: ring A (moved t r) (act r x) y = ring A t x (r y).
Proof.
apply/setP=> z; apply/imsetP/idP => [[u + ->]|zr]; first by rewrite ring_moved.
by exists (r^-1 z); rewrite ?ring_moved permKV.
Qed.

Lemma turned_moved d d' y : (forall X, d' X = d (r @: X)) -> r (turned A (moved t r) (act r x) d' y) = turned A t x d (r y).
Proof.
move=> same; rewrite /turned (staysP rA); case: ifP => // yA.
rewrite same ring_image; apply: (ahead_moved (B := ring A t x (r y))); last exact: in_ring.
exact: ring_moved.
Qed.

Lemma world_moved i y : world A (moved t r) (act r x) i y = world A t x i (r y).
Proof. by rewrite /world ffunE (turned_moved (d := fun X => x.2 X i)) // => X; rewrite ffunE. Qed.

Lemma pass_moved A1 A2 : stays r A1 -> stays r A2 -> pass A (moved t r) (act r x) A1 A2 = pass A t x A1 A2.
Proof.
move=> r1 r2.
have same B i v : stays r B -> #|[set y in B | world A (moved t r) (act r x) i y == v]| = #|[set y in B | world A t x i y == v]|.
  move=> rB; rewrite -(card_imset _ (@perm_inj _ r)); congr #|pred_of_set _|.
  apply/setP=> y; apply/imsetP/idP => [[z + ->]|]; rewrite !inE.
    by rewrite world_moved (staysP rB).
  move=> yB; exists (r^-1 y); last by rewrite permKV.
  by rewrite inE world_moved -(staysP rB) permKV.
by apply: eq_forallb => i; apply: eq_forallb => v; rewrite !same.
Qed.

End Moved.

Lemma try_sides : sides_only try act.
Proof.
move=> A t x r A1 A2; rewrite /try; case at_A : (choose _ _) => [[B1 B2]|//].
case: ifP => // passed [<- <-] r1 r2.
have rA : stays r A by have [<- _ _ _] := two at_A; rewrite /stays imsetU (eqP r1) (eqP r2).
by rewrite counts_moved // at_A pass_moved // passed.
Qed.

Lemma shows_still A t x r : still r A -> shows A (moved t r) (act r x) = shows A t x.
Proof.
move=> id; have rA := still_stays id.
have same_label y : y \in A -> label A (moved t r) (act r x) y = label A t x y by move=> yA; rewrite label_moved ?id.
have same_members a : members A (label A (moved t r) (act r x)) a = members A (label A t x) a.
  by apply/setP=> y; rewrite !inE; case yA: (y \in A); rewrite //= same_label.
congr (_, _, _).
- apply: eq_imset => a; rewrite /group same_members; congr (_, _).
  by apply: eq_in_imset => y; rewrite inE ffunE => /andP[/id ->].
- apply/ffunP=> y; rewrite !ffunE; have [yA|yA] := boolP (y \in A); last by rewrite /turned (negPf yA).
  have := turned_moved t x rA (d := fun=> 1%N) (d' := fun=> 1%N) y (fun=> erefl).
  by rewrite (id _ yA) id // turned_in.
apply: eq_imset => i; apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA.
by rewrite world_moved ?id.
Qed.

Lemma try_still : elsewhere_still try act.
Proof.
move=> A t x r id; have rA := still_stays id; rewrite /try counts_moved // shows_still // untried_still //.
case at_A : (choose _ _) => [[A1 A2]|//]; have [whole _ _ _] := two at_A.
by rewrite pass_moved //; apply: still_stays => y yA; apply: id; rewrite -whole inE yA ?orbT.
Qed.

(* The k-th of the worlds of a leaf takes the place of the true one: people carry its values, and shifts are counted from there. *)
Section Leaf.

Variables (A : {set 'I_n}) (k : 'I_l).

Definition to_world t x : {perm 'I_n} := turn A t x (fun X => x.2 X k).

Definition recount (h : shifts) : shifts := [ffun X : {set 'I_n} => if l <= #|X| then
  [ffun i => inord ((h X (tperm ord0 k i) + (#|X| - h X k)) %% #|X|)] else h X].

Definition other_lot t x : lot := (x.1.1.1, to_world t x * x.1.1.2, to_world t x * x.1.2, recount x.2).

Lemma recountE h X i : l <= #|X| -> recount h X i = (h X (tperm ord0 k i) + (#|X| - h X k)) %% #|X| :> nat.
Proof.
move=> large; rewrite !ffunE large ffunE inordK // ltnS ltnW //.
by apply: (leq_trans (ltn_pmod _ (leq_trans (ltn0Sn w) large))); rewrite -[n in _ <= n]card_ord max_card.
Qed.

Lemma valid_at h X : valid h -> l <= #|X| -> [/\ h X ord0 = ord0, forall i, h X i < #|X| & injective (h X)].
Proof. by move=> /forallP/(_ X)/implyP/[apply] /and3P[/eqP ? /forallP ? /injectiveP ?]. Qed.

Lemma recount_valid h : valid h -> valid (recount h).
Proof.
move=> ok; apply/forallP=> X; apply/implyP=> large; have [zero less inj] := valid_at ok large.
have some : 0 < #|X| by apply: leq_trans large.
apply/and3P; split.
- by rewrite -val_eqE /= recountE // tpermL subnKC ?modnn // ltnW.
- by apply/forallP=> i; rewrite recountE // ltn_pmod.
apply/injectiveP=> i j /(congr1 val) /=; rewrite !recountE // => /eqP.
rewrite eqn_modDr !modn_small // => /eqP /val_inj /inj; exact: perm_inj.
Qed.

Lemma recount_twice h : valid h -> recount (recount h) = h.
Proof.
move=> ok; apply/ffunP=> X; have [large|small] := boolP (l <= #|X|); last by rewrite !ffunE (negPf small) ?ffunE ?(negPf small).
have [zero less inj] := valid_at ok large; have some : 0 < #|X| by apply: leq_trans large.
apply/ffunP=> i; apply/val_inj; rewrite /= recountE // !recountE // tpermK tpermR zero add0n.
have [->|hk] := eqVneq (h X k : nat) 0%N; first by rewrite subn0 !modnn subn0 modnDr modn_mod modnDr modn_small.
have hk' : #|X| - h X k < #|X| by rewrite ltn_subrL lt0n hk.
by rewrite (modn_small hk') subKn ?(ltnW (less k)) // modnDml -addnA subnK ?(ltnW (less k)) // modnDr modn_small.
Qed.

Variables (t : table n V) (x : lot).
Hypothesis ok : valid x.2.
Hypothesis large : forall y, y \in A -> l <= #|ring A t x y|.

Let r := to_world t x.

Lemma to_worldE y : r y = turned A t x (fun X => x.2 X k) y.
Proof. by rewrite permE. Qed.

Lemma to_world_stays : stays r A.
Proof. by apply: stays_if => y yA; rewrite to_worldE turned_in. Qed.

Lemma to_world_outside y : y \notin A -> r y = y.
Proof. by move=> yA; rewrite to_worldE /turned (negPf yA). Qed.

Lemma label_same y : y \in A -> label A (moved t r) (other_lot t x) y = label A t x y.
Proof.
move=> yA; have := label_moved t x to_world_stays y; rewrite /label /= => ->.
by have := turned_label t x (fun X => x.2 X k) yA; rewrite -to_worldE.
Qed.

Lemma members_same a : members A (label A (moved t r) (other_lot t x)) a = members A (label A t x) a.
Proof. by apply/setP=> y; rewrite !inE; case yA: (y \in A); rewrite //= label_same. Qed.

Lemma ring_same y : y \in A -> ring A (moved t r) (other_lot t x) y = ring A t x y.
Proof. by move=> yA; rewrite /ring members_same label_same. Qed.

Lemma circle_same d y : y \in A -> ahead (ring A t x y) (r * x.1.2) d y = ahead (ring A t x y) x.1.2 d y.
Proof.
move=> yA; set R := ring A t x y; have yR : y \in R := in_ring t x yA.
have onR z : z \in R -> r z = ahead R x.1.2 (x.2 R k) z.
  rewrite inE => /andP[zA /eqP zl]; rewrite to_worldE /turned zA.
  by have -> : ring A t x z = R by rewrite /ring zl.
have rR : forall z, (z \in R) = (r z \in R).
  move=> z; have stay : stays r R by apply: stays_if => u uR; rewrite onR // ahead_in.
  by rewrite (staysP stay).
apply: (@perm_inj _ r); rewrite (ahead_moved x.1.2 d rR yR) onR // onR ?ahead_in //.
by rewrite !ahead_ahead // addnC.
Qed.

Lemma turned_same d y : turned A (moved t r) (other_lot t x) d y = turned A t x d y.
Proof. by rewrite /turned; case: ifP => // yA; rewrite ring_same //= circle_same. Qed.

Lemma world_same i y : y \in A -> world A (moved t r) (other_lot t x) i y = world A t x (tperm ord0 k i) y.
Proof.
move=> yA; rewrite /world turned_same ffunE to_worldE; congr (t _).
have yR := in_ring t x yA; have [_ less _] := valid_at ok (large yA).
rewrite {1}/turned turned_in yA turned_ring // /turned yA ahead_ahead //=.
rewrite -ahead_mod // recountE ?large // modnDml -addnA subnK ?(ltnW (less k)) // modnDr.
by rewrite ahead_mod.
Qed.

Lemma shows_same : shows A (moved t r) (other_lot t x) = shows A t x.
Proof.
congr (_, _, _).
- apply: eq_imset => a; rewrite /group members_same; congr (_, _).
  have stay : stays r (members A (label A t x) a).
    by apply: stays_if => y; rewrite !inE => /andP[yA /eqP <-]; rewrite (staysP to_world_stays) yA to_worldE turned_label ?eqxx.
  by rewrite -[in RHS](eqP stay) -imset_comp; apply: eq_imset => y; rewrite /= ffunE.
- by apply/ffunP=> y; rewrite !ffunE turned_same.
have same i : of_world A (moved t r) (other_lot t x) i = of_world A t x (tperm ord0 k i).
  by apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA; rewrite world_same.
apply/setP=> f; apply/imsetP/imsetP => [[i _ ->]|[i _ ->]]; first by exists (tperm ord0 k i); rewrite ?same.
by exists (tperm ord0 k i); rewrite ?same ?tpermK.
Qed.

Lemma pass_same A1 A2 : A1 \subset A -> A2 \subset A -> pass A (moved t r) (other_lot t x) A1 A2 = pass A t x A1 A2.
Proof.
move=> sub1 sub2.
have same B i v : B \subset A -> [set y in B | world A (moved t r) (other_lot t x) i y == v] =
    [set y in B | world A t x (tperm ord0 k i) y == v].
  by move=> sub; apply/setP=> y; rewrite !inE; case yB: (y \in B); rewrite //= world_same ?(subsetP sub).
apply/forallP/forallP => all i; apply/forallP=> v.
  have := all (tperm ord0 k i) => /forallP /(_ v).
  by rewrite !same // tpermK.
by have := all (tperm ord0 k i) => /forallP /(_ v); rewrite !same.
Qed.

Lemma try_same f : try A t x = inl (inl f) -> try A (moved t r) (other_lot t x) = inl (inl f).
Proof.
rewrite /try counts_moved; last exact: to_world_stays.
case at_A : (choose _ _) => [[A1 A2]|//]; have [whole _ _ _] := two at_A.
by rewrite pass_same ?shows_same // -whole ?subsetUl ?subsetUr.
Qed.

Lemma back : to_world (moved t r) (other_lot t x) = r^-1.
Proof.
apply/permP=> y; apply: (@perm_inj _ r); rewrite permKV.
have -> : to_world (moved t r) (other_lot t x) y = turned A t x (fun X => recount x.2 X k) y.
  by rewrite permE turned_same.
have [yA|yA] := boolP (y \in A); last by rewrite /turned (negPf yA) to_world_outside.
rewrite to_worldE {1}/turned turned_in yA turned_ring // /turned yA ahead_ahead ?in_ring //=.
have [zero less _] := valid_at ok (large yA).
rewrite -ahead_mod ?in_ring // recountE ?large // tpermR zero add0n modnDml subnK ?(ltnW (less k)) // modnn.
by rewrite ahead0 // in_ring.
Qed.

Lemma back_lot : other_lot (moved t r) (other_lot t x) = x.
Proof.
rewrite {1}/other_lot back /= !mulKg recount_twice //.
by case: x => [[[? ?] ?] ?].
Qed.

End Leaf.

Section TheoremA.

Local Open Scope ring_scope.

Variables (R : realFieldType) (prior : table n V -> R) (cohorts : seq {set 'I_n}).
Hypothesis prior_ge0 : forall t, 0 <= prior t.
Hypothesis cohorts_apart : {in cohorts &, forall A B, A != B -> [disjoint A & B]}.

(* Ways to give out the values of a cohort are equally likely before the releases. *)
Hypothesis exchangeable : forall t r, {in cohorts, forall A, stays r A} -> prior (moved t r) = prior t.

(* Every part has lots of its own. All lots are drawn uniformly, shifts among the valid ones. *)
Definition all_lots := {ffun {set 'I_n} -> lot}.
Definition state := (table n V * all_lots)%type.
Definition possible (s : state) := [forall B, valid (s.2 B).2].
Definition weight (s : state) : R := if possible s then prior s.1 / #|[set h : all_lots | [forall B, valid (h B).2]]|%:R else 0.
Definition published (s : state) := [seq run try #|A| A s.1 s.2 | A : {set 'I_n} <- cohorts].

Variable o : seq (seq ({set 'I_n} * (failed + U))).
Definition knows := [pred s : state | (published s == o) && possible s].

(* A leaf that was tried and failed, in which every ring has at least l people; and one of its groups. *)
Variables (A0 : {set 'I_n}) (sh : failed) (g : {set 'I_n} * {set V}) (x : 'I_n) (v : V).
Hypothesis leaf_in : has (fun leaves => (A0, inl sh) \in leaves) o.
Hypothesis large : forall h, h \in sh.1.1 -> h.1 != set0 -> (l <= #|h.1|)%N.
Hypothesis g_in : g \in sh.1.1.
Hypothesis x_in : x \in g.1.

Lemma leaf_try k A t lots leaf shown : (leaf, shown) \in run try k A t lots -> try leaf t (lots leaf) = inl shown.
Proof.
elim: k A => [//|k IH] A /=; case at_A : (try A t (lots A)) => [s|[A1 A2]].
  by rewrite inE => /eqP[-> ->].
by rewrite mem_cat => /orP[] /IH.
Qed.

Lemma run_same k A t l1 l2 : l1 =1 l2 -> run try k A t l1 = run try k A t l2.
Proof.
move=> same; elim: k A => [//|k IH] A /=; rewrite same.
by case: (try A t (l2 A)) => [//|[A1 A2]]; rewrite !IH.
Qed.

Definition to (k : 'I_l) (s : state) : state :=
  let r := to_world A0 k s.1 (s.2 A0) in (moved s.1 r, [ffun B => if B == A0 then other_lot A0 k s.1 (s.2 A0) else act r (s.2 B)]).

Section State.

Variable s : state.
Hypothesis known : knows s.

Let t := s.1.
Let y0 := s.2 A0.

Lemma ok0 : valid y0.2.
Proof. by case/andP: known => _ /forallP; apply. Qed.

Lemma cohort_of : exists A, [/\ A \in cohorts, A0 \in leaves try #|A| A t s.2 & try A0 t y0 = inl (inl sh)].
Proof.
case/andP: known => /eqP is_o _; move: leaf_in; rewrite -is_o => /hasP[_ /mapP[A in_cohorts ->] in_run].
by exists A; split=> //; [apply/mapP; exists (A0, inl sh) | apply: leaf_try in_run].
Qed.

Lemma is_shown : sh = shows A0 t y0.
Proof.
have [A [_ _]] := cohort_of; rewrite /try; case: (choose _ _) => [[A1 A2]|//].
by case: ifP => // _ [->].
Qed.

Lemma in_leaf : x \in A0 /\ g = group A0 (label A0 t y0) t (label A0 t y0 x).
Proof.
move: x_in; have := g_in; rewrite is_shown => /imsetP[a _ ->] /=.
by rewrite inE => /andP[-> /eqP ->].
Qed.

Lemma ring_large y : y \in A0 -> (l <= #|ring A0 t y0 y|)%N.
Proof.
move=> yA; apply: (large (h := group A0 (label A0 t y0) t (label A0 t y0 y))); first by rewrite is_shown imset_f.
by apply/set0Pn; exists y; rewrite /= inE yA eqxx.
Qed.

Lemma to_published k : published (to k s) = published s /\ {in cohorts, forall A, stays (to_world A0 k t y0) A}.
Proof.
have [A [A_in A0_in at_A0]] := cohort_of.
have some : A0 != set0 by apply/set0Pn; exists x; have [] := in_leaf.
have inside := to_world_stays A0 k t y0; have outside := @to_world_outside A0 k t y0.
have same shown : try A0 t y0 = inl shown -> try A0 (moved t (to_world A0 k t y0)) (other_lot A0 k t y0) = inl shown.
  by rewrite at_A0 => -[<-]; apply: (try_same k ok0 ring_large).
have sub : A0 \subset A := leaves_in try_two A0_in.
have part B : B \in cohorts -> B = A \/ [disjoint A0 & B].
  move=> B_in; have [->|BA] := eqVneq B A; [by left | right].
  by apply: disjointWl sub _; apply: cohorts_apart; rewrite // eq_sym.
split=> [|B B_in].
  rewrite /published; apply/eq_in_map => B B_in /=.
  rewrite (@run_same _ _ _ _ (other_lots act A0 s.2 (to_world A0 k t y0) (other_lot A0 k t y0))); last by move=> C; rewrite ffunE.
  have [->|dis] := part B B_in.
    exact: (run_leaf (lots := s.2) try_two try_sides try_still some inside outside same A0_in).
  exact: (run_elsewhere t s.2 (other_lot A0 k t y0) try_two try_still some outside _ dis).
have [->|dis] := part B B_in; first exact: (stays_around inside outside).
by apply: still_stays; apply: still_elsewhere dis.
Qed.

Lemma to_possible k : possible (to k s).
Proof.
apply/forallP=> B; rewrite ffunE; case: eqP => _; first exact: recount_valid ok0.
case/andP: known => _ /forallP/(_ B)/forallP all; apply/forallP=> X; rewrite /valid_ring ffunE.
by have := all (to_world A0 k t y0 @: X); rewrite /valid_ring card_imset //; apply: perm_inj.
Qed.

Lemma to_knows k : knows (to k s).
Proof. by rewrite /knows /= to_possible andbT; have [-> _] := to_published k; case/andP: known. Qed.

Lemma to_weight k : weight (to k s) = weight s.
Proof.
rewrite /weight to_possible; case/andP: known => _ ->.
by rewrite exchangeable //; have [] := to_published k.
Qed.

Lemma to_twice k : to k (to k s) = s.
Proof.
rewrite {1}/to /= ffunE eqxx back ?ok0 //; last exact: ring_large.
rewrite [RHS]surjective_pairing; congr (_, _); first by rewrite moved_moved mulVg moved1.
apply/ffunP=> B; rewrite !ffunE; case: eqP => [->|_]; first by rewrite back_lot ?ok0 //; apply: ring_large.
rewrite /act /= !mulKg; case: (s.2 B) => [[[z q] c] h] /=; congr (_, _, _, _).
apply/ffunP=> X; rewrite !ffunE -imset_comp; congr (h _).
by rewrite -[RHS]imset_id; apply: eq_imset => y /=; rewrite permKV.
Qed.

Lemma value_after k : (to k s).1 x = t (ahead (ring A0 t y0 x) y0.1.2 (y0.2 (ring A0 t y0 x) k) x).
Proof. by rewrite ffunE to_worldE /turned; have [-> _] := in_leaf. Qed.

Lemma ring_differs : {in ring A0 t y0 x &, injective t}.
Proof.
move=> y z; rewrite !inE => /andP[yA /eqP yl] /andP[zA /eqP zl].
by apply: (@rings_differ _ _ _ _ plan A0 t y0.1.1.1 y0.1.1.2) => //; exact: (etrans yl (esym zl)).
Qed.

(* At most one of the l worlds gives x the value v. *)
Lemma once : (#|[pred k | (to k s).1 x == v]| <= 1)%N.
Proof.
have [xA _] := in_leaf; have [_ less inj] := valid_at ok0 (ring_large xA); have xR := in_ring t y0 xA.
apply/card_le1_eqP => i j; rewrite !inE !value_after => /eqP <- /eqP /ring_differs same.
by apply: inj; apply: val_inj; apply: (@ahead_inj_place _ _ y0.1.2 x _ _ xR (less j) (less i)); rewrite same ?ahead_in.
Qed.

(* Exactly one does, in a ring of l people that has the value. *)
Lemma exactly_once : #|g.1| = l -> v \in g.2 -> #|[pred k | (to k s).1 x == v]| = 1%N.
Proof.
have [xA ->] := in_leaf; rewrite /= -/(ring A0 t y0 x) => size /imsetP[z zR is_v].
have [_ less inj] := valid_at ok0 (ring_large xA); have xR := in_ring t y0 xA.
pose whose k := ahead (ring A0 t y0 x) y0.1.2 (y0.2 (ring A0 t y0 x) k) x.
have onto : [set whose k | k : 'I_l] == ring A0 t y0 x.
  rewrite eqEcard card_imset ?card_ord ?size ?leqnn ?andbT.
    by apply/subsetP=> _ /imsetP[k _ ->]; apply: ahead_in.
  by move=> i j same; apply: inj; apply: val_inj; apply: (@ahead_inj_place _ _ y0.1.2 x _ _ xR (less i) (less j)).
move: zR; rewrite -(eqP onto) => /imsetP[k _ is_z].
apply/eqP; rewrite eqn_leq once; apply/card_gt0P; exists k.
by rewrite inE value_after is_v is_z.
Qed.

End State.

Lemma weight_ge0 s : 0 <= weight s.
Proof. by rewrite /weight; case: ifP => // _; rewrite divr_ge0 ?ler0n. Qed.

(* The reader knows the groups, circles and worlds of all leaves, of all cohorts. *)
Theorem theorem_A : 0 < mass weight knows -> posterior weight knows [pred s : state | s.1 x == v] <= l%:R^-1.
Proof.
move=> some; have size : l%:R = #|'I_l|%:R :> R by rewrite card_ord.
rewrite size; apply: (exchange (move := to)) => //; rewrite ?card_ord //.
- by move=> k s1 s2 /to_twice twice1 /to_twice twice2 same; rewrite -(twice1 k) -(twice2 k) same.
- by move=> k s /to_knows.
- by move=> k s /to_weight.
- exact: weight_ge0.
exact: once.
Qed.

Theorem theorem_A_exactly : 0 < mass weight knows -> #|g.1| = l -> v \in g.2 ->
  posterior weight knows [pred s : state | s.1 x == v] = l%:R^-1.
Proof.
move=> some size v_in; have is_l : l%:R = #|'I_l|%:R :> R by rewrite card_ord.
rewrite is_l; apply: (exchange_exactly (move := to)) => //.
- by move=> k s1 s2 /to_twice twice1 /to_twice twice2 same; rewrite -(twice1 k) -(twice2 k) same.
- by move=> k s /to_knows.
- by move=> k s /to_weight.
by move=> s known; apply: exactly_once.
Qed.

End TheoremA.

End Shifts.
